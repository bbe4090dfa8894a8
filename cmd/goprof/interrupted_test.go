//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"goprof/output"
)

func init() {
	programs["neverwritten"] = func() {
		defer cleanOnSignal()()
		file, err := output.Reserve(os.Args[1])
		if err != nil {
			panic(err)
		}
		file.Write(func(io.Writer) error {
			fmt.Println("begun")
			select {}
		})
	}
}

// TestInterrupted: a signal leaves no unfinished file. It ends the process as signals do.
func TestInterrupted(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(s) {
			// A shell's background job ignores SIGINT, and so does each program that it starts: goprof would not end.
			t.Logf("%v was ignored when this test was started: not tried", s)
			continue
		}
		dir := t.TempDir()
		cmd := exec.Command("neverwritten", filepath.Join(dir, "x.html"))
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		word := ""
		if _, err := fmt.Fscan(out, &word); err != nil || word != "begun" {
			t.Errorf("%q %v", word, err)
		}
		cmd.Process.Signal(s)
		cmd.Wait()
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); !status.Signaled() || status.Signal() != s {
			t.Errorf("%v: %v", s, cmd.ProcessState)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%v leaves %v", s, left)
		}
	}
}
