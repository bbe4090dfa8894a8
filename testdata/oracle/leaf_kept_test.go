//go:build linux

package oracle

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"goprof/process"
	"goprof/profile"
	"goprof/sampler/look"
	"goprof/testdata/corefile"
	"goprof/testdata/jvmtest"
	"goprof/vmstructs"
)

// TestLeafKeep samples the programs of TestLeaf, and keeps a core file of each JVM with the pcs at which it was
// sampled. TestLeafKept scores the rules at these pcs, as often as wanted: so one rule is compared with another at the
// same pcs. Programs that are held back are left out: whoever makes rules works with these files.
//
//	GOPROF_LEAF_KEEP=/dir GOPROF_LEAF_SAMPLES=3000 go test ./testdata/oracle -run 'TestLeafKeep$' -v
//	GOPROF_LEAF_KEEP=/dir go test ./testdata/oracle -run 'TestLeafKept$' -v
//
// TestLeafGuestKeep keeps the same of JVMs of another CPU.
func TestLeafKeep(t *testing.T) {
	dir := keptFolder(t)
	samples, _ := strconv.Atoi(os.Getenv("GOPROF_LEAF_SAMPLES"))
	if samples == 0 {
		samples = 1000
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, mode := range leafModes {
			t.Run(mode.name, func(t *testing.T) {
				for _, p := range leafPrograms {
					if p.held {
						continue
					}
					t.Run(p.name, func(t *testing.T) {
						flags := append(append(fullRecords(jdk), mode.flags...), p.line[1:]...)
						jvm := jvmtest.Start(t, jdk, p.line[0], flags...)
						name := fmt.Sprintf("%s-%s-%d", mode.name, p.name, jdk.Version)
						keepLeaves(t, jvm.PID, mode.level, samples, filepath.Join(dir, name))
					})
				}
			})
		}
	})
}

// keptFolder is where cores and pcs are kept. Both tests are tools of those who make rules: TestLeaf is the test.
func keptFolder(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("GOPROF_LEAF_KEEP")
	if dir == "" {
		t.Skip("a tool for making rules: GOPROF_LEAF_KEEP names no folder for its core files (some 20 GB)")
	}
	return dir
}

// keepLeaves writes NAME.pcs and NAME.core.
func keepLeaves(t *testing.T, pid int, level uint8, samples int, name string) {
	t.Helper()
	s := attach(t, pid)
	out, err := os.Create(name + ".pcs")
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	time.Sleep(2 * time.Second)
	n := 0
	for tries := 0; n < samples && tries < 30; tries++ {
		sample(t, s, time.Millisecond, samples, func(_ *look.Look, st *profile.Stack) {
			if p, ok := compiledPlace(s, st); ok && p.b.Level == level && n < samples {
				n++
				fmt.Fprintf(out, "%x %q\n", p.pc, p.called)
			}
		})
	}
	writeCore(t, pid, name)
	t.Logf("%d samples", n)
}

// writeCore writes NAME.core, a core file of a JVM. The JVM's threads stand still meanwhile.
func writeCore(t *testing.T, pid int, name string) {
	t.Helper()
	core := corefile.Write(t, pid)
	defer os.Remove(core)
	copyBig(t, core, name+".core") // the folder may be of another file system
}

// TestLeafKept scores the rules on what TestLeafKeep has kept, and prints what first sights take.
func TestLeafKept(t *testing.T) {
	dir := keptFolder(t)
	files, _ := filepath.Glob(filepath.Join(dir, "*.pcs"))
	if len(files) == 0 {
		t.Fatalf("%s has nothing that TestLeafKeep has kept", dir)
	}
	var sum leafScores
	for _, name := range files {
		name = name[:len(name)-len(".pcs")]
		t.Run(filepath.Base(name), func(t *testing.T) {
			scores := scoreKept(t, name)
			t.Log(scores)
			sum.sum(scores)
		})
	}
	t.Logf("all: %v", &sum)
	t.Logf("rules that have decided: %s", sum.rules())
}

// scoreKept writes NAME.told: what is told at each pc, and what the record has. Two such files of two rules, or of a
// rule before and after it was made faster, can be compared line by line.
func scoreKept(t *testing.T, name string) *leafScores {
	t.Helper()
	j := openJVM(t, name+".core", process.CoreOptions{})
	defer j.Close()
	target := &countedReads{Target: j.Core}
	vm, err := vmstructs.Open(target)
	if err != nil {
		t.Fatal(err)
	}
	pcs, err := os.Open(name + ".pcs")
	if err != nil {
		t.Fatal(err)
	}
	defer pcs.Close()
	told, err := os.Create(name + ".told")
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	judge := newLeafJudge(target, vm)
	scores := &leafScores{seen: map[uint64]bool{}, target: target}
	var asked []leafTold
	lines := bufio.NewScanner(pcs)
	for lines.Scan() {
		var p leafPlace
		if _, err := fmt.Sscanf(lines.Text(), "%x %q", &p.pc, &p.called); err != nil {
			t.Fatal(err)
		}
		b, err := vm.Blob(p.pc)
		if err != nil || b.Kind != vmstructs.Nmethod || !vm.FullRecords(b) {
			continue // it is gone
		}
		p.b = b
		asked = append(asked, scores.ask(judge, p))
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for i := range asked {
		scores.score(judge, &asked[i])
		writeTold(told, judge, &asked[i])
	}
	return scores
}

// writeTold writes what is told at a place, and what the record has.
func writeTold(out io.Writer, j *leafJudge, p *leafTold) {
	truth, worth := j.truth(p.leafPlace)
	text := [...]string{isTruth: "truth", isGone: "gone", isOfOther: "of other code", isStray: "stray"}[worth]
	fmt.Fprintf(out, "%x %q %v:%s | %s:%s\n", p.pc, p.called, p.sure, scopesText(p.scopes), text, scopesText(truth))
}

func scopesText(scopes []vmstructs.Scope) (text string) {
	for i := range scopes {
		text += fmt.Sprintf(" %s@%d(%d)", scopes[i].Method.Full(), scopes[i].BCI, scopes[i].Line)
	}
	return text
}

// countedReads counts the reads of a target's memory: of a live one each is a system call.
type countedReads struct {
	process.Target
	reads int
}

func (c *countedReads) Read(addr uint64, p []byte) error {
	c.reads++
	return c.Target.Read(addr, p)
}

func (c *countedReads) ReadMany(rs []process.Range) {
	c.reads++
	c.Target.ReadMany(rs)
}

// count is 0 if nobody counts.
func (c *countedReads) count() int {
	if c == nil {
		return 0
	}
	return c.reads
}
