package oracle

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"goprof/process"
	"goprof/testdata/captured"
	"goprof/unwind/leaf"
	"goprof/vmstructs"
)

// TestRecordFirstSights makes the recording of BenchmarkFirstSight: what the first sights of some pcs read, out of the
// core of javac that TestLeafKeep has kept. It is run by hand, when first sights have come to read other memory:
//
//	GOPROF_RECORD_WALKS=60 GOPROF_LEAF_KEEP=/dir go test ./testdata/oracle -run TestRecordFirstSights -v
func TestRecordFirstSights(t *testing.T) {
	n := wantedWalks(t)
	name := filepath.Join(keptFolder(t), "c2-javac-25")
	j := openJVM(t, name+".core", process.CoreOptions{})
	defer j.Close()
	rec := captured.NewRecorder(j.Core)
	vm, err := vmstructs.Open(rec)
	if err != nil {
		t.Fatal(err)
	}
	finder := leaf.New(rec, vm)
	pcs := keptPCs(t, name+".pcs")
	for i := 0; i < len(pcs); i += max(len(pcs)/n, 1) {
		b, err := vm.Blob(pcs[i])
		if err != nil || b.Kind != vmstructs.Nmethod || !vm.FullRecords(b) {
			continue
		}
		snap := &process.Snapshot{}
		snap.Regs[rec.CPU().PC] = pcs[i]
		rec.Begin(snap)
		finder.At(vm.SafepointsOnly(b), pcs[i])
	}
	dir := filepath.Join("..", "..", "unwind", "testdata", "sights")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	saveWalks(t, rec, filepath.Join(dir, "javac-jdk25-amd64.walks"))
}

// keptPCs are the pcs of a file of TestLeafKeep, but those in calls.
func keptPCs(t *testing.T, file string) (pcs []uint64) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var p leafPlace
		if _, err := fmt.Sscanf(lines.Text(), "%x %q", &p.pc, &p.called); err != nil {
			t.Fatal(err)
		}
		if p.called == "" {
			pcs = append(pcs, p.pc)
		}
	}
	return pcs
}
