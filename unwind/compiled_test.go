package unwind

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"testing"

	"goprof/process"
	"goprof/profile"
	"goprof/testdata/captured"
	"goprof/vmstructs"
)

// TestStaticCallStubs moves recorded threads into the stub of the call that a compiled frame was in. The return address
// has been pushed, and the callee has not begun. The frames must be those of the recording: the method appears once,
// with its line.
func TestStaticCallStubs(t *testing.T) {
	manyWalks(t, 100, func(t *testing.T, w *Walker, snap *process.Snapshot, stack *profile.Stack) (tried int) {
		var again profile.Stack
		for k := range stack.Frames {
			f := &stack.Frames[k]
			if k == 0 || stack.Frames[k-1].SP == f.SP || !w.vm.InCode(f.PC) {
				continue // this test needs the innermost method of a frame in a call
			}
			b, err := w.vm.Blob(f.PC)
			if err != nil || b.StubBegin == 0 || !b.HasPcDesc(f.PC) {
				continue
			}
			stopped := *snap
			stopped.SP = f.SP - 8
			stopped.Stack = slices.Clone(snap.Stack[stopped.SP-snap.SP:])
			binary.LittleEndian.PutUint64(stopped.Stack, f.PC)
			stopped.Regs[w.cpu.PC], stopped.Regs[w.cpu.SP] = b.StubBegin, stopped.SP
			w.Walk(&stopped, &again)
			if again.Truncated != stack.Truncated || !slices.EqualFunc(again.Frames, stack.Frames[k:], sameFrame) {
				t.Fatalf("frame %d of %s: %v, %d frames, want %d", k, f.Func.Name, again.Truncated, len(again.Frames),
					len(stack.Frames)-k)
			}
			tried++
		}
		return tried
	})
}

// sameFrame compares frames, but not their frame pointers. The made-up registers do not have these.
func sameFrame(a, b profile.Frame) bool {
	a.FP, b.FP = 0, 0
	return a == b
}

// manyWalks walks all recorded threads of javac. do returns the number of cases that it has tried. Each recording must
// have least cases or more.
func manyWalks(t *testing.T, least int, do func(t *testing.T, w *Walker, snap *process.Snapshot,
	stack *profile.Stack) (tried int)) {
	for _, file := range recordings(t, "walks") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			rec, w := recorded(t, file)
			tried := 0
			eachWalk(rec, w, func(snap *process.Snapshot, stack *profile.Stack) { tried += do(t, w, snap, stack) })
			if tried < least {
				t.Errorf("only %d cases", tried)
			}
		})
	}
}

// The deoptimisation handler calls its own second instruction, replaces the pushed address by its own, and jumps away.
// There is one frame all the time.
func TestInDeoptHandler(t *testing.T) {
	const begin, stubs, handler = 0x1000, 0x1100, 0x1110
	b := &vmstructs.Blob{Kind: vmstructs.Nmethod, Begin: begin, End: handler + 20, StubBegin: stubs, FrameSize: 4,
		DeoptHandlers: [2]uint64{handler, 0}}
	for _, r := range []struct {
		name   string
		pc, on uint64 // on is the word on top of the stack
		pushed bool
	}{
		{"at its beginning", handler, 0x77, false},
		{"what was pushed is the second instruction", handler + 5, handler + 5, true},
		{"what was pushed has become the handler", handler + 10, handler, true},
		{"in the exception handler, with an old word on top", stubs + 4, handler, false},
		{"in the body", begin + 20, handler, false},
	} {
		w := evaluator()
		w.snap = &process.Snapshot{SP: 0x7000, Stack: binary.LittleEndian.AppendUint64(nil, r.on)}
		w.cur.pc, w.cur.sp, w.cur.regs[w.cpu.SP] = r.pc, w.snap.SP, w.snap.SP
		c, ok := w.behindBody(b)
		if ok != r.pushed || ok && (c.pc != handler || c.sp != w.cur.sp+8 || !c.fpKnown) {
			t.Errorf("%s: %+v %v", r.name, c, ok)
		}
	}
}

// TestCompiledCallerIsNotGuessed: a stack ends at code that does not show where it returns to (here the code cannot
// even be read). A return address at the distance of the frame's size is no proof: the frame may be incomplete, and the
// address may belong to a lower frame.
func TestCompiledCallerIsNotGuessed(t *testing.T) {
	eachCall(t, func(t *testing.T, w *Walker, snap *process.Snapshot, f *profile.Frame) {
		b := &vmstructs.Blob{Kind: vmstructs.Nmethod, Begin: 8, End: 4096, FrameSize: int(f.SP-snap.SP) / 8}
		w.snap = snap
		w.begin()
		w.cur.pc = 64
		if c, ok := w.compiledCaller(b); ok {
			t.Fatalf("%+v", c)
		}
	})
}

// TestAtVerifiedEntry: a thread spins at a method's entry while HotSpot writes a jump there (JDK 11: 5 of 2,000 stacks
// in a bad moment). The thread's caller is on top of its stack, whatever the code is.
func TestAtVerifiedEntry(t *testing.T) {
	eachCall(t, func(t *testing.T, w *Walker, snap *process.Snapshot, f *profile.Frame) {
		b := &vmstructs.Blob{Kind: vmstructs.Nmethod, Begin: 8, VerifiedEntry: 64, End: 4096, FrameSize: 4}
		w.snap = moveTo(w, snap, 64, f.SP-8)
		w.begin()
		if c, ok := w.compiledCaller(b); !ok || c.pc != f.PC || c.sp != f.SP || c.fp != snap.Regs[w.cpu.FP] {
			t.Fatalf("%v %+v", ok, c)
		}
	})
}

// eachCall finds, in each recorded thread, the first frame that is in a call and has its return address directly below
// it. Not each thread has such a frame, but many do.
func eachCall(t *testing.T, do func(t *testing.T, w *Walker, snap *process.Snapshot, caller *profile.Frame)) {
	manyWalks(t, 50, func(t *testing.T, w *Walker, snap *process.Snapshot, stack *profile.Stack) (tried int) {
		for k := 1; k < len(stack.Frames); k++ {
			f := &stack.Frames[k]
			if ret, ok := w.slot(f.SP, -1); ok && ret == f.PC && f.SP-snap.SP >= 16 && w.vm.InCode(ret) && w.plausible(ret) {
				w.out = stack
				do(t, w, snap, f)
				return 1
			}
		}
		return 0
	})
}

// TestCallerWithoutDebugInfo: if it is not known which methods are inlined at a call, goprof does not claim that the
// code's owner has called the frame above (churn in CI: one stack of 6,000).
func TestCallerWithoutDebugInfo(t *testing.T) {
	rec, w := recorded(t, recordings(t, "walks")[0])
	b := *compiledIn(t, w, rec)
	b.End = b.Begin + 1<<31 // no code is that large, so its records are not used
	for _, exact := range []bool{true, false} {
		var out profile.Stack
		w.snap, w.out = rec.Snapshots[0], &out
		w.begin()
		w.emit(profile.Frame{Func: &profile.Func{Name: "above"}})
		why := w.emitCompiled(&b, b.Begin+64, exact)
		if want := map[bool]int{true: 2, false: 1}[exact]; !exact && why != profile.BadDebugInfo || len(out.Frames) != want {
			t.Errorf("exact %v: %v, %d frames, want %d", exact, why, len(out.Frames), want)
		}
	}
}

// compiledIn returns the code of a compiled frame of a recorded thread.
func compiledIn(t *testing.T, w *Walker, rec *captured.Recording) *vmstructs.Blob {
	t.Helper()
	for i, snap := range rec.Snapshots {
		rec.Step(i)
		var stack profile.Stack
		w.Walk(snap, &stack)
		for k := range stack.Frames {
			if b, err := w.vm.Blob(stack.Frames[k].PC); err == nil && b.Kind == vmstructs.Nmethod && b.Method != nil {
				return b
			}
		}
	}
	t.Fatal("no compiled frame")
	return nil
}
