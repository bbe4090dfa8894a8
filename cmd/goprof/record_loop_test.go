//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	machine "goprof/testdata/host"
)

// TestLoop: each second has a file with an account of its own. Of the files of this run, the newest ones are kept.
func TestLoop(t *testing.T) {
	t.Parallel()
	jvm := guest(t)
	for _, end := range []string{".jfr", ".collapsed"} {
		dir := t.TempDir()
		foreign := filepath.Join(dir, "a-20000101-000000"+end)
		if err := os.WriteFile(foreign, []byte("precious"), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("goprof", "record", "--pid", fmt.Sprint(jvm.PID), "-o", filepath.Join(dir, "a"+end), "-r", "200",
			"--loop", "1s", "--keep", "2")
		var told strings.Builder
		cmd.Stderr = &told
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		begun := map[string]bool{}
		machine.WaitFor(t, "a fourth file is begun", func() bool {
			names, _ := filepath.Glob(filepath.Join(dir, "a-2*"+end))
			for _, name := range names {
				begun[name] = true
			}
			return len(begun) >= 4
		})
		time.Sleep(500 * time.Millisecond) // so that this file has samples, too
		cmd.Process.Signal(os.Interrupt)
		kept := 3 // two, and the last one
		switch err := cmd.Wait(); {
		case exit.Code(cmd.ProcessState.ExitCode()) == exit.NoSamples:
			kept = 2 // the machine has stood still for so long that the last file had just begun
		case err != nil:
			t.Errorf("%v: %s", err, told.String())
		}
		if got, _ := os.ReadFile(foreign); string(got) != "precious" {
			t.Errorf("another's file holds %q", got)
		}
		made, _ := filepath.Glob(filepath.Join(dir, "a-2*"+end))
		if len(made) != kept {
			t.Errorf("there are %q: %s", made, told.String())
		}
		for _, name := range made[1:] {
			if end == ".jfr" {
				if b := readJFR(t, name); b.samples == 0 || b.events["goprof.Account"] != 1 {
					t.Errorf("%s: %d samples, events %v", name, b.samples, b.events)
				}
			} else if _, err := os.Stat(output.SummaryPath(name)); err != nil {
				t.Error(err)
			}
		}
		if strings.Count(told.String(), "samples of ") < 3 {
			t.Errorf("it says %s", told.String())
		}
	}
}
