//go:build linux

package ptrace

import (
	"errors"
	"io"
	"testing"
	"time"

	"goprof/testdata/ctest"
)

func tasks(t *testing.T, pid int) (tids []int) {
	t.Helper()
	tr := NewTracer(pid, ctest.NeedCPU(t))
	defer tr.Close()
	if err := tr.proc.Threads(func(tid int) { tids = append(tids, tid) }); err != nil {
		t.Fatal(err)
	}
	return tids
}

// goOn checks that no thread of a process is stopped or traced any more.
func goOn(t *testing.T, pid int) {
	t.Helper()
	for _, tid := range tasks(t, pid) {
		ctest.Eventually(t, "the thread goes on", func() bool {
			s := ctest.State(pid, tid)
			return s != 't' && s != 'T' && ctest.TracerOf(tid) == 0
		})
	}
}

// TestHoldAll: all threads are stopped while f runs, and go on afterwards.
func TestHoldAll(t *testing.T) {
	p := ctest.Run(t, ctest.Shares, "12", "1", "0")
	for range 12 {
		p.Line(t)
	}
	all, cpu := tasks(t, p.PID), ctest.NeedCPU(t)
	err := HoldAll(p.PID, cpu, nil, time.Minute, time.Minute, func(held []Held, _ <-chan struct{}) {
		if len(held) != len(all) {
			t.Errorf("%d of %d threads are held", len(held), len(all))
		}
		for _, h := range held {
			if s := ctest.State(p.PID, h.TID); s != 't' || h.Regs[cpu.SP] == 0 {
				t.Errorf("thread %d is in state %c, sp %#x", h.TID, s, h.Regs[cpu.SP])
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	goOn(t, p.PID)
}

// TestHoldEnds: threads go on although f does not return: when the time is up, when goprof is interrupted, and when
// goprof is to be stopped.
func TestHoldEnds(t *testing.T) {
	cancel := make(chan struct{})
	for name, begin := range map[string]func() (end func()){
		"time":   func() func() { return func() {} },
		"cancel": func() func() { close(cancel); return func() {} },
		"suspend": func() func() {
			done := make(chan struct{})
			go func() { defer close(done); Suspend(func() {}) }()
			return func() { <-done }
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := ctest.Run(t, ctest.Shares, "4", "1", "0")
			p.Line(t)
			most := time.Hour
			if name == "time" {
				most = 20 * time.Millisecond
			}
			ended := make(chan struct{})
			var end func()
			var asked <-chan struct{}
			if name == "cancel" {
				asked = cancel
			}
			err := HoldAll(p.PID, ctest.NeedCPU(t), asked, time.Minute, most, func(_ []Held, cut <-chan struct{}) {
				defer close(ended)
				end = begin()
				<-cut
			})
			if !errors.Is(err, ErrLetGo) {
				t.Errorf("%v", err)
			}
			<-ended
			end()
			goOn(t, p.PID)
		})
	}
}

// TestHoldTraced: a process that another one traces is left alone.
func TestHoldTraced(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	p.Line(t)
	err := HoldAll(p.PID, ctest.NeedCPU(t), nil, time.Minute, time.Minute, func([]Held, <-chan struct{}) {
		err := HoldAll(p.PID, ctest.NeedCPU(t), nil, time.Minute, time.Minute, func([]Held, <-chan struct{}) {})
		if !errors.Is(err, ErrTracedBy) {
			t.Errorf("%v", err)
		}
	})
	if err != nil {
		t.Error(err)
	}
	goOn(t, p.PID)
}

// TestHoldExec: a program that runs another one meanwhile does not hold up goprof. The exec waits until the threads
// that are held have been reaped, and PTRACE_SEIZE of the next one waits for the exec.
func TestHoldExec(t *testing.T) {
	p := ctest.Run(t, ctest.Execs, "100")
	go io.Copy(io.Discard, p.Out)
	cpu, whole := ctest.NeedCPU(t), 0
	rounds := ctest.Rounds(150)
	for i := range rounds {
		time.Sleep(time.Duration(i%30) * 200 * time.Microsecond)
		ended := make(chan error, 1)
		go func() {
			ended <- HoldAll(p.PID, cpu, nil, time.Minute, time.Minute, func([]Held, <-chan struct{}) {})
		}()
		select {
		case err := <-ended:
			if err == nil {
				whole++
			}
		case <-time.After(2 * time.Minute):
			p.Process.Kill() // ends both waits
			t.Fatal("it waits for the exec, and the exec for it")
		}
	}
	t.Logf("%d of %d met no exec", whole, rounds)
}
