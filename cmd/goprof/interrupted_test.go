//go:build unix

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"goprof/output/outfile"
)

func init() {
	programs["interruptedtwice"] = func() {
		oneRequest, _ = time.ParseDuration(os.Args[1])
		ctx, stop := interruptible(context.Background())
		defer stop()
		fmt.Println("begun")
		<-ctx.Done()
		fmt.Println("ending")
		io.Copy(io.Discard, os.Stdin)
		fmt.Println("written")
	}
	programs["neverwritten"] = func() {
		defer cleanOnSignal()()
		file, err := outfile.Reserve(os.Args[1])
		if err != nil {
			panic(err)
		}
		file.Write(func(io.Writer) error {
			fmt.Println("begun")
			select {}
		})
	}
}

// TestInterruptedTwice: of two signals at once, as timeout(1) sends them, the second one changes nothing. A later one
// ends goprof, which says so.
func TestInterruptedTwice(t *testing.T) {
	if signal.Ignored(syscall.SIGINT) {
		t.Skip("SIGINT was ignored when this test was started")
	}
	for _, c := range []struct {
		oneRequest, out, told string
		ends                  bool
	}{
		{"1h", "written", "", false},
		{"0s", "", "goprof: ended by a signal (interrupt) before its result was written\n", true},
	} {
		var told strings.Builder
		cmd := exec.Command("interruptedtwice", c.oneRequest)
		cmd.Stderr = &told
		in, err := cmd.StdinPipe()
		out, err2 := cmd.StdoutPipe()
		if err := cmp.Or(err, err2, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		var begun, ending, written string
		fmt.Fscan(out, &begun)
		cmd.Process.Signal(syscall.SIGINT)
		fmt.Fscan(out, &ending)
		cmd.Process.Signal(syscall.SIGINT)
		if !c.ends {
			time.Sleep(50 * time.Millisecond) // a goprof that ends by the second signal does so meanwhile
			in.Close()
		}
		ended := make(chan struct{})
		go func() { // goprof may listen for that signal a moment later
			for c.ends {
				select {
				case <-ended:
					return
				case <-time.After(10 * time.Millisecond):
					cmd.Process.Signal(syscall.SIGINT)
				}
			}
		}()
		fmt.Fscan(out, &written)
		close(ended)
		cmd.Wait()
		if written != c.out || told.String() != c.told || cmd.ProcessState.Exited() == c.ends {
			t.Errorf("%s: %q, %q, %v", c.oneRequest, written, told.String(), cmd.ProcessState)
		}
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
