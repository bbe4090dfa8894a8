//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"goprof/testdata/jvmtest"
)

// TestMain makes the test binary its own helper, as bench is.
func TestMain(m *testing.M) {
	if err := helper(os.Args[1:]); err != errNoHelper {
		exit(err)
	}
	os.Exit(m.Run())
}

// TestShortForm makes each measurement once and briefly. It demands that there are stops, whatever their length.
func TestShortForm(t *testing.T) {
	jdk := jvmtest.JDKs(t)[0]
	dir := t.TempDir()
	goprof := filepath.Join(dir, "goprof")
	if out, err := exec.Command("go", "build", "-o", goprof, "goprof/cmd/goprof").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var out bytes.Buffer
	b := &bench{java: jdk.Home, goprofs: []string{goprof}, rounds: 1, pairs: 1, window: 100 * time.Millisecond,
		lead: 100 * time.Millisecond, warm: 100 * time.Millisecond,
		crowds: []int{1, 30}, loops: 2, rates: []int{500}, out: &out}
	if err := b.run([]string{"pauses", "slowdown", "idle", "crowd", "rate", "loaded"}); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	loaded := `C loop, real-time priority, 500 Hz +\d+ stops`
	if canTrace() != nil { // the section is left out, and the bench says so
		loaded = ""
	}
	for _, want := range []string{
		loaded, `C loop, 500 Hz +\d`, `our stop, 500 Hz +\d`, `goprof record, ptrace, 500 Hz +\d`,
		`our sampler, no walks, 500 Hz +-?\d`, `(?m)^ +30 `, `goprof record, 100 Hz +30 threads +`,
		`goprof record, ptrace +\d`, `C loop, as fast as it goes +\d`,
		`(?s)CPU time of a sample.*\nC loop, 500 Hz +-?\d`,
		`(?s)CPU time of a sample.*goprof record, ptrace, 500 Hz +-?\S+ \[\S+ \S+\]( +-?\d+\.\d\d \[\S+ \S+\])+\n`,
	} {
		if !regexp.MustCompile(want).Match(out.Bytes()) {
			t.Errorf("%q is not in it", want)
		}
	}
	// The figures are stated for a size of stack. The targets in C and in Java use as much.
	used := regexp.MustCompile(`(\d+) bytes of its stack`).FindAllSubmatch(out.Bytes(), -1)
	for _, m := range used {
		if n, _ := strconv.Atoi(string(m[1])); n < 14<<10 || n > 20<<10 {
			t.Errorf("a target uses %d bytes of its stack", n)
		}
	}
	if len(used) != 2 {
		t.Errorf("%d targets", len(used))
	}
	t.Log("\n" + out.String())
}
