package captured

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goprof/testdata/fuzzseed"
)

// TestWriteSeeds takes seeds from the recorded walks: see package fuzzseed.
func TestWriteSeeds(t *testing.T) {
	fuzzseed.Making(t)
	walks, _ := filepath.Glob("../../unwind/testdata/walks/*.walks")
	for _, file := range walks {
		seedOfRecording(t, file)
	}
}

// seedOfRecording makes a recording from the beginnings of a few walks of a long one.
func seedOfRecording(t *testing.T, file string) {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	long, err := Load(f)
	if err != nil {
		t.Fatal(err)
	}
	r := NewRecorder(long)
	r.Image("libjvm.so")
	table, _ := r.Global("libjvm.so", "gHotSpotVMStructs")
	r.Global("libjvm.so", "no_such_symbol")
	r.Global("libnone.so", "x")
	for i, snap := range long.Snapshots[:4] {
		long.Step(i)
		short := *snap
		short.Stack, short.Cut = snap.Stack[:min(len(snap.Stack), 256+64*i)], true
		r.Begin(&short)
		r.Read(table, make([]byte, 64))
		r.Read(snap.SideAddr, make([]byte, 8))
		for _, k := range slices.SortedFunc(maps.Keys(long.codes),
			func(a, b codeKey) int { return cmp.Compare(a.pc, b.pc) })[:5+i] {
			r.Code(k.pc, k.exact)
		}
	}
	var b bytes.Buffer
	if err := r.Save(&b, nil); err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(&b)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(filepath.Base(file), ".walks")
	fuzzseed.Write(t, ".", "FuzzRecording", name, plain)
}
