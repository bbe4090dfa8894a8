//go:build linux

package oracle

import (
	"errors"
	"regexp"
	"slices"
	"testing"
	"time"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/captured"
	"goprof/testdata/jvmtest"
	"goprof/unwind"
)

// TestRecordUnwinding records walks of a thread in the stubs by which exceptions leave C1's frames. Those of JDK 8 go
// back, on a condition, with their caller's frame pointer as stack pointer (arch/arm64, takesCallersSP); those of
// 11.0.33 and 17.0.21 do not. Single steps hardly ever come to these stubs, so the thread is stopped by breakpoints of
// the CPU's: nothing is written into its memory. It is run by hand:
//
//	scripts/arm64-walks.sh TestRecordUnwinding
func TestRecordUnwinding(t *testing.T) {
	wanted := wantedWalks(t)
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		lockThread(t)
		jvm := jvmtest.Start(t, jdk, "truth.Steps", slices.Concat(stepFlags, []string{"-XX:TieredStopAtLevel=1"})...)
		s := attach(t, jvm.PID)
		s.Walker.Warm()
		stubs := unwindingStubs(s)
		if len(stubs) == 0 {
			t.Fatal("no stub unwinds exceptions")
		}
		r := unwindingRecorder{seen: map[uint64]bool{}}
		r.t, r.s, r.count = t, s, newStepCount()
		tid, hint := steppedThread(t, s)
		r.st, r.hint = &stepper{p: s.Process, tid: tid}, hint
		r.rec, r.walker = recorderOf(t, s.Process)
		end := time.Now().Add(maxRecording())
		for len(r.seen) < wanted && time.Now().Before(end) {
			r.visit(stubs)
		}
		t.Logf("%d walks in %d stubs", len(r.seen), len(stubs))
		saveWalks(t, r.rec, walksFile(t, "rare", "unwinding", jdk))
	})
}

// unwinding are the names of the stubs: those that ask the VM for a handler, and that go back to one.
var unwinding = regexp.MustCompile("unwind_exception|handle_exception")

// unwindingStubs are where these stubs begin. They lie in the code heap of the call stub.
func unwindingStubs(s *session.Session) (begin []uint64) {
	const reach, unit = 8 << 20, 64
	from := s.VM.CallStubReturn() &^ (reach - 1)
	for pc := from; pc < from+reach; {
		b, err := s.VM.Blob(pc)
		if err != nil || b.End <= pc {
			pc += unit
			continue
		}
		if unwinding.MatchString(b.Name) {
			begin = append(begin, b.Begin)
		}
		pc = (b.End + unit - 1) &^ (unit - 1)
	}
	return begin
}

type unwindingRecorder struct {
	stepping
	rec    *captured.Recorder
	walker *unwind.Walker
	seen   map[uint64]bool
}

// visit waits until the thread comes to one of the stubs, and steps through it.
func (r *unwindingRecorder) visit(stubs []uint64) {
	if err := r.st.stop(); err != nil {
		r.t.Fatal(err)
	}
	err := r.st.runOnTo(stubs)
	if err == nil {
		err = r.stepThrough(r.st.pc)
	}
	if err = errors.Join(err, r.st.resume()); err != nil {
		r.t.Fatal(err)
	}
}

// maxStub bounds the steps in a stub.
const maxStub = 200

// stepThrough records a walk at each instruction of a stub. The calls of C are run through.
func (r *unwindingRecorder) stepThrough(stub uint64) error {
	m := &r.moments[0]
	for range maxStub {
		if err := m.take(r.s, r.st, r.hint); err != nil {
			return err
		}
		if b, err := r.s.VM.Blob(m.pc); err != nil || b.Begin != stub {
			return nil
		}
		if !r.seen[m.pc] && m.why == profile.Whole {
			r.seen[m.pc] = true
			r.rec.Begin(&m.snap)
			var stack profile.Stack
			r.walker.Walk(&m.snap, &stack)
		}
		var err error
		if opOf(m.code[:]) == opCall {
			err = r.st.runOnTo([]uint64{m.pc + maxInstruction})
		} else {
			err = r.st.step()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// runOnTo is runTo for a long way, on which signals are delivered.
func (s *stepper) runOnTo(ends []uint64) error {
	for !slices.Contains(ends, s.pc) {
		if s.signal != 0 {
			if err := s.step(); err != nil { // into the handler
				return err
			}
			continue
		}
		if err := s.runTo(ends); err != nil {
			return err
		}
	}
	return nil
}
