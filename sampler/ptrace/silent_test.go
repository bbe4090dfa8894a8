//go:build linux

package ptrace

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"goprof/process"
	"goprof/process/procfs"
	"goprof/sampler/look"
	"goprof/testdata/ctest"
)

// tooLong is longer than the machine alone keeps any thread stopped: the machine may take goprof's CPU for a second
// while goprof holds a thread. Without a Runner the thread would stay stopped for ever.
const tooLong = 100 * StandsAtMost

func TestSilentThread(t *testing.T) {
	p, silent, others := ctest.StartSilent(t, 1)
	longest := ctest.Standing(p.PID, append(silent, others...))
	onTracer(t, p.PID, func(tr *Tracer) {
		if _, o := lookPatiently(tr, silent[0], 0); o != Silent {
			t.Fatalf("a look at it: %v", o)
		}
		if got := tr.Silent(); len(got) != 1 || got[0] != silent[0] {
			t.Errorf("silent threads: %v", got)
		}
		stops := tr.Pauses.Count()
		if _, o := lookPatiently(tr, silent[0], 0); o != Silent || tr.Pauses.Count() != stops {
			t.Errorf("the next look: %v, %d stops", o, tr.Pauses.Count()-stops)
		}
		if o := tr.LookUnstopped(silent[0], Hint{}, new(look.Look)); o != Silent {
			t.Errorf("a look without a stop: %v", o)
		}
		for range 20 {
			if snap, o := lookPatiently(tr, others[0], 0); o != Taken || len(snap.Stack) == 0 {
				t.Errorf("a look at another one: %v, %d bytes", o, len(snap.Stack))
			}
		}
		p.In.Write([]byte("\n"))
		p.Line(t)
		ctest.Eventually(t, "its memory answers, so it is looked at again", func() bool {
			snap, o := lookPatiently(tr, silent[0], 0)
			return o == Taken && len(snap.Stack) == unknownStack
		})
	})
	if most := longest(); most > tooLong {
		t.Errorf("a thread stood for %v", most)
	} else {
		t.Logf("the longest that a thread was seen to stand: %v", most)
	}
}

// TestSilentThreadsInADump: each thread is looked at, or named.
func TestSilentThreadsInADump(t *testing.T) {
	p, silent, others := ctest.StartSilent(t, MostSilent-1)
	longest := ctest.Standing(p.PID, append(silent, others...))
	var looks []Subject
	for _, tid := range append(append([]int{}, silent...), others...) {
		looks = append(looks, Subject{TID: tid})
	}
	became := map[int]Outcome{}
	onTracer(t, p.PID, func(tr *Tracer) {
		AllUntil(nil, tr, time.Second, looks, func(snap *look.Look, o Outcome) { became[snap.TID] = o })
	})
	for _, tid := range silent {
		// on a busy machine the thread may have had no CPU to stop on
		if o := became[tid]; o != Silent && o != TimedOut {
			t.Errorf("a silent thread: %v", o)
		}
	}
	for _, tid := range others {
		if o := became[tid]; o != Taken && o != TimedOut {
			t.Errorf("another one: %v", o)
		}
	}
	if most := longest(); most > tooLong {
		t.Errorf("a thread stood for %v", most)
	}
}

// TestAllReadsComeBack: so many reads do not return that nothing can be read any more. When the memory answers, goprof
// looks at other threads again.
func TestAllReadsComeBack(t *testing.T) {
	p, silent, others := ctest.StartSilent(t, MostSilent)
	onTracer(t, p.PID, func(tr *Tracer) {
		for _, tid := range silent {
			if _, o := lookPatiently(tr, tid, 0); o != Silent {
				t.Errorf("a silent thread: %v", o)
			}
		}
		if _, o := lookPatiently(tr, others[0], 0); o != Silent || tr.ReadErr() != ErrSilent {
			t.Errorf("another one: %v, %v", o, tr.ReadErr())
		}
		p.In.Write([]byte("\n"))
		p.Line(t)
		ctest.Eventually(t, "others are looked at again", func() bool {
			_, o := lookPatiently(tr, others[0], 0)
			return o == Taken && tr.ReadErr() == nil
		})
	})
}

// TestLateReadsEndNoRun: so many reads are late that nothing is read. The run ends once all of them sleep, and not with
// the error of an earlier look.
func TestLateReadsEndNoRun(t *testing.T) {
	tr := &Tracer{err: errShortRegs, lateReads: MostSilent, silentThreads: map[int]*silentThread{}}
	for tid := range MostSilent {
		tr.silentThreads[tid] = &silentThread{reader: new(reader), asleep: tid > 0, judged: Monotonic() + int64(time.Hour)}
	}
	if err := tr.ReadErr(); err != nil {
		t.Errorf("one read is late for want of a CPU: %v", err)
	}
	tr.silentThreads[0].asleep = true
	if err := tr.ReadErr(); err != ErrSilent {
		t.Errorf("all reads sleep: %v", err)
	}
}

// TestApartWaitsForItsRead: until a read apart from looks has returned, all others fail and none is sent.
func TestApartWaitsForItsRead(t *testing.T) {
	p, silent, _ := ctest.StartSilent(t, 1, "sleep")
	ctest.Eventually(t, "it sleeps", func() bool { return ctest.State(p.PID, silent[0]) == 'S' })
	onTracer(t, p.PID, func(tr *Tracer) {
		m := NewMemory(nil)
		tr.Serve(m)
		tr.apart = silent[0]
		_, _, sp, _, ok := procfs.ParseSyscall(tr.proc.Read(silent[0], "syscall"))
		if !ok {
			t.Fatal("its stack pointer is not known")
		}
		var err error
		// some way above, the stack has a hole
		read := func() { err = m.Read(sp+64<<10, make([]byte, 8)) }
		for range 3 {
			err = nil
			if tr.Apart(read) || err == nil || tr.lateReads != 1 {
				t.Errorf("its memory answers: %v, %d reads are under way", err, tr.lateReads)
			}
		}
		p.In.Write([]byte("\n"))
		p.Line(t)
		ctest.Eventually(t, "it is read again", func() bool { return tr.Apart(read) && err == nil && tr.lateReads == 0 })
	})
}

// TestReadLate: a thread of the program holds the lock of its address space, and has no CPU. Then the program's memory
// is read too late. It is not silent.
func TestReadLate(t *testing.T) {
	p := ctest.Run(t, ctest.Locked)
	onTracer(t, p.PID, func(tr *Tracer) {
		seen := map[Outcome]int{}
		why := process.NoCPU
		try := func() Outcome {
			o := tr.LookUnstopped(p.PID, Hint{}, new(look.Look))
			seen[o]++
			return o
		}
		ctest.Eventually(t, "the lock is held", func() bool {
			if try() == ReadLate {
				why = process.WhyLate() // WhyLate looks at the Runner, too
			}
			return why != process.NoCPU
		})
		t.Logf("%v", seen)
		if why != process.Locked || seen[Silent] > 0 || len(tr.Silent()) > 0 {
			t.Errorf("goprof's calls: %v; silent threads: %v, looks: %v", why, tr.Silent(), seen)
		}
		ctest.Eventually(t, "an Observer is left alone", func() bool {
			o := NewObserver(p.PID, tr.cpu, unknownStack)
			defer o.Close()
			n := o.Each(1, func(tr *Tracer, _ int) { tr.LookUnstopped(p.PID, Hint{}, new(look.Look)) })
			if n == 0 && o.Why() != ReadLate {
				t.Errorf("the Observer's read: %v", o.Why())
			}
			return n == 0
		})
		p.In.Write([]byte("\n"))
		ctest.Eventually(t, "the lock is free", func() bool { return try() == Taken })
	})
}

// TestSilentObserver: an OS thread of goprof that reads by itself is given up. It ends when its read returns.
func TestSilentObserver(t *testing.T) {
	p, silent, others := ctest.StartSilent(t, 1, "sleep")
	// a thread that still waits for a CPU to fall asleep on counts as running
	for _, tid := range []int{p.PID, silent[0]} {
		ctest.Eventually(t, "it sleeps", func() bool { return ctest.State(p.PID, tid) == 'S' })
	}
	cpu := ctest.NeedCPU(t)
	tids := []int{p.PID, silent[0], p.PID}
	snap := new(look.Look)
	looks := func(o *Observer, tids ...int) (outcomes []Outcome) {
		n := o.Each(len(tids), func(tr *Tracer, i int) {
			got := tr.LookUnstopped(tids[i], Hint{}, snap)
			outcomes = append(outcomes[:i:i], got)
		})
		return outcomes[:n:n]
	}
	first := NewObserver(p.PID, cpu, DefaultStackLimit)
	if got := looks(first, tids...); !slices.Equal(got, []Outcome{Taken}) || first.IsBack() || first.Why() != Silent {
		t.Fatalf("up to the silent thread: %v, back %v, %v", got, first.IsBack(), first.Why())
	}
	second := NewObserver(p.PID, cpu, DefaultStackLimit)
	defer second.Close()
	if got := looks(second, p.PID, others[0], p.PID); !slices.Equal(got, []Outcome{Taken, Running, Taken}) {
		t.Errorf("others: %v", got)
	}
	second.Each(1, func(tr *Tracer, _ int) {
		if o := tr.Look(others[0], Hint{}, snap); o != WrongThread {
			t.Errorf("it stops a thread: %v", o)
		}
	})
	runtime.GC() // the collector waits for no system call
	p.In.Write([]byte("\n"))
	p.Line(t)
	ctest.Eventually(t, "its OS thread ends", func() bool {
		_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d", first.tid.Load()))
		return err != nil && first.IsBack()
	})
	ctest.Eventually(t, "it sleeps again", func() bool { return ctest.State(p.PID, silent[0]) == 'S' })
	if got := looks(second, silent[0]); !slices.Equal(got, []Outcome{Taken}) || len(snap.Stack) != unknownStack {
		t.Errorf("its memory answers: %v, %d bytes", got, len(snap.Stack))
	}
}
