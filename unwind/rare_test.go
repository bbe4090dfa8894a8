package unwind

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goprof/arch"
	"goprof/process"
	"goprof/profile"
	"goprof/testdata/captured"
	"goprof/vmstructs"
)

// eachRareWalk walks the recordings of testdata/oracle/stacks_rare_fixture_test.go. Their threads are in code that
// samples rarely find, and in which single steps have found a wrong walk.
func eachRareWalk(t *testing.T, do func(t *testing.T, w *Walker, snap *process.Snapshot, stack *profile.Stack)) {
	for _, file := range recordings(t, "rare") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			rec, w := recorded(t, file)
			eachWalk(rec, w, func(snap *process.Snapshot, stack *profile.Stack) { do(t, w, snap, stack) })
		})
	}
}

func eachWalk(rec *captured.Recording, w *Walker, do func(snap *process.Snapshot, stack *profile.Stack)) {
	for i, snap := range rec.Snapshots {
		var stack profile.Stack
		rec.Step(i)
		w.Walk(snap, &stack)
		do(snap, &stack)
	}
}

// TestRareWalks: each walk is whole, and is the one that the steps had shown to be right.
func TestRareWalks(t *testing.T) {
	texts := map[string]*bytes.Buffer{}
	eachRareWalk(t, func(t *testing.T, w *Walker, snap *process.Snapshot, stack *profile.Stack) {
		if stack.Truncated != profile.Whole {
			t.Errorf("%s: %v after %d frames", w.placeName(snap), stack.Truncated, len(stack.Frames))
		}
		if texts[t.Name()] == nil {
			texts[t.Name()] = new(bytes.Buffer)
		}
		text := texts[t.Name()]
		text.WriteString(w.placeName(snap) + " ")
		writeStack(text, snap, stack)
	})
	for name, text := range texts {
		golden := strings.TrimSuffix(filepath.Base(name), ".walks") + ".golden.gz"
		compareGolden(t, filepath.Join("testdata", "rare", golden), text.Bytes())
	}
}

// placeName names the code in which a thread was stopped.
func (w *Walker) placeName(snap *process.Snapshot) string {
	pc := snap.Regs[w.cpu.PC]
	if c, ok := w.vm.Codelet(pc); ok {
		return w.vm.Describe(c)
	}
	if b, err := w.vm.Blob(pc); err == nil {
		return b.Name
	}
	if site := w.native(pc, true); site != nil {
		return site.fn.Name
	}
	return "nowhere"
}

// toCompiled is the end of branch (templateTable_x86.cpp), where it enters compiled code after a leave: pop rcx; mov
// rsp, rdx; and rsp, -16; push rcx. A jump follows.
var toCompiled = []byte{0x59, 0x48, 0x8b, 0xe2, 0x48, 0x83, 0xe4, 0xf0, 0x51}

// TestBranchGoesToCompiledCode moves recorded threads into the five instructions with which a branch leaves the
// interpreter (on-stack replacement). Compiled code had called their interpreted method. The frame is gone, so the
// frame pointer is the caller's and may have any value.
func TestBranchGoesToCompiledCode(t *testing.T) {
	tried := 0
	eachRareWalk(t, func(t *testing.T, w *Walker, snap *process.Snapshot, stack *profile.Stack) {
		c, ok := w.vm.Codelet(snap.Regs[w.cpu.PC])
		if !ok || !strings.HasPrefix(w.vm.Describe(c), "if") {
			return
		}
		code := w.vm.CodeletCode(c)
		pop := bytes.Index(code, toCompiled)
		if pop < 0 {
			t.Fatalf("%s: no way to compiled code", w.vm.Describe(c))
		}
		leave := bytes.LastIndexByte(code[:pop], 0xc9)
		goesTo := plantOSR(t, w, code, pop+len(toCompiled), c.Begin)
		for _, stopped := range leaveByBranch(w, snap, c.Begin+uint64(leave), c.Begin+uint64(pop)) {
			stopped.Regs[goesTo.register] = goesTo.nmethod
			var again profile.Stack
			w.Walk(stopped, &again)
			if again.Truncated != profile.Whole || !slices.Equal(again.Frames[1:], stack.Frames[1:]) ||
				again.Frames[0].Func != w.method(goesTo.blob.Method) || again.Frames[0].BCI != goesTo.blob.EntryBCI {
				t.Errorf("%s+%#x: %v, %d frames, want %d", w.vm.Describe(c), stopped.Regs[w.cpu.PC]-c.Begin, again.Truncated,
					len(again.Frames), len(stack.Frames))
			}
			stopped.Regs[goesTo.register] = 1
			if w.Walk(stopped, &again); again.Truncated != profile.BadInterpreted {
				t.Errorf("%s+%#x, no OSR method: %v", w.vm.Describe(c), stopped.Regs[w.cpu.PC]-c.Begin, again.Truncated)
			}
			tried++
		}
	})
	if tried < 20 {
		t.Errorf("only %d stops", tried)
	}
}

// osrPlant is an OSR method that a test has made, and the register in which the branch expects it.
type osrPlant struct {
	blob     *vmstructs.Blob
	nmethod  uint64
	register uint8
}

// plantOSR turns a compiled method into an OSR method whose entry is the value of some word of the recording. The jump
// at that offset of the code reads that word.
func plantOSR(t *testing.T, w *Walker, code []byte, jump int, begin uint64) (p osrPlant) {
	t.Helper()
	exit, err := w.tracer.TraceEntry(code, begin, begin+uint64(jump))
	if err != nil || exit.Through.Kind != arch.AtMem {
		t.Fatalf("the jump to compiled code: %v, %+v", err, exit)
	}
	w.t.(*captured.Recording).EachPiece(func(addr uint64, piece []byte) {
		for at := int(-addr & 7); at+8 <= len(piece) && p.blob == nil; at += 8 {
			word := binary.LittleEndian.Uint64(piece[at:])
			if !w.vm.InCode(word) || w.vm.InInterpreter(word) {
				continue
			}
			if b, err := w.vm.Blob(word); err == nil && b.Kind == vmstructs.Nmethod && word >= b.Begin {
				b.OSR, b.OSREntry, b.EntryBCI = true, word, 1
				p = osrPlant{b, addr + uint64(at) - uint64(int64(exit.Through.Off)), exit.Through.Reg}
			}
		}
	})
	if p.blob == nil {
		t.Fatal("no word points into the code of a compiled method")
	}
	return p
}

// leaveByBranch executes the leave and the instructions of toCompiled, and stops after each of them.
func leaveByBranch(w *Walker, snap *process.Snapshot, leave, pop uint64) (stops []*process.Snapshot) {
	const rdx, rcx, rbp, rsp = 1, 2, 6, 7 // DWARF's numbers
	w.snap = snap
	regs := snap.Regs
	fp := regs[rbp]
	stop := func(pc uint64) {
		regs[w.cpu.PC] = pc
		s := *snap
		s.Regs, s.SP, s.Stack = regs, regs[rsp], slices.Clone(snap.Stack[regs[rsp]-snap.SP:])
		stops = append(stops, &s)
	}
	regs[rdx], _ = w.slot(fp, w.vm.Interp().SenderSP)
	regs[rbp], _ = w.slot(fp, 0)
	regs[rsp] = fp + 8
	stop(leave + 1)
	stop(pop)
	regs[rcx], _ = w.slot(fp, 1)
	regs[rsp] += 8
	stop(pop + 1)
	regs[rsp] = regs[rdx]
	stop(pop + 4)
	regs[rsp] &^= 15
	stop(pop + 8)
	regs[rsp] -= 8
	stop(pop + 9)
	binary.LittleEndian.PutUint64(stops[len(stops)-1].Stack, regs[rcx])
	return stops
}

// TestSlowCRC32: the entry of CRC32's intrinsic jumps to the entry of all methods if a safepoint is requested. Up to
// that jump there is no frame, and the method is still the one in its register.
func TestSlowCRC32(t *testing.T) {
	tried := 0
	eachRareWalk(t, func(t *testing.T, w *Walker, snap *process.Snapshot, stack *profile.Stack) {
		c, ok := w.vm.Codelet(snap.Regs[w.cpu.PC])
		if !ok || !strings.Contains(w.vm.Describe(c), "CRC32") {
			return
		}
		w.snap = snap
		if top, ok := w.word(snap.SP); !ok || top != stack.Frames[1].PC {
			return // the intrinsic is about to return here
		}
		stopped := *snap
		code := w.vm.CodeletCode(c)
		stopped.Regs[w.cpu.PC] = c.Begin + uint64(bytes.LastIndexByte(code, 0xe9)) // jmp
		var again profile.Stack
		w.Walk(&stopped, &again)
		if again.Truncated != profile.Whole || len(again.Frames) != len(stack.Frames) ||
			!slices.Equal(again.Frames[1:], stack.Frames[1:]) ||
			again.Frames[0].Func != stack.Frames[0].Func {
			t.Errorf("%v, %d frames, want %d", again.Truncated, len(again.Frames), len(stack.Frames))
		}
		tried++
	})
	if tried == 0 {
		t.Error("no stop in the entry")
	}
}

// TestCallerOfMathEntry: a math entry of the interpreter calls a stub. A register has the sp of the entry's caller. If
// that register is lost, only a caller that uses a frame pointer is found. If the caller is compiled code, the stack
// ends, and does not continue with a frame of another size.
func TestCallerOfMathEntry(t *testing.T) {
	tried := 0
	eachRareWalk(t, func(t *testing.T, w *Walker, snap *process.Snapshot, stack *profile.Stack) {
		if len(stack.Frames) < 3 || !strings.HasPrefix(stack.Frames[1].Func.Name, "Interpreter (") ||
			stack.Frames[2].Kind != profile.Interpreted {
			return
		}
		entry, caller := stack.Frames[1], stack.Frames[2]
		slot := caller.SP - 8
		if ret, ok := w.word(slot); !ok || ret != caller.PC {
			t.Fatalf("%#x is no return address", ret)
		}
		stopped := *snap
		stopped.Stack = slices.Clone(snap.Stack)
		for _, r := range []struct {
			ret uint64
			why profile.Reason
		}{{caller.PC, profile.Whole}, {compiledReturnIn(w, stack), profile.BadInterpreted}} {
			binary.LittleEndian.PutUint64(stopped.Stack[slot-snap.SP:], r.ret)
			w.snap, w.out = &stopped, new(profile.Stack)
			w.begin()
			w.toCaller(entry.PC, entry.SP, 0, false)
			if why := w.stepInterpreted(); why != r.why || why == profile.Whole && w.cur.pc != r.ret {
				t.Errorf("to %#x: %v, %#x", r.ret, why, w.cur.pc)
			}
			tried++
		}
	})
	if tried == 0 {
		t.Error("no math entry")
	}
}

// compiledReturnIn finds a return address into compiled Java on a stack.
func compiledReturnIn(w *Walker, stack *profile.Stack) uint64 {
	for i := 1; i < len(stack.Frames); i++ {
		f := &stack.Frames[i]
		if b, err := w.vm.Blob(f.PC); err == nil && b.Kind == vmstructs.Nmethod && b.HasPcDesc(f.PC) {
			return f.PC
		}
	}
	return 0
}
