package unwind

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goprof/process"
	"goprof/profile"
	"goprof/testdata/captured"
	"goprof/vmstructs"
)

// rareRecordings runs a test on each recording of testdata/rare, with the codelets of its threads.
func rareRecordings(t *testing.T, do func(t *testing.T, rec *captured.Recording, w *Walker,
	codelets []vmstructs.Codelet)) {
	for _, file := range recordings(t, "rare") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			rec, w := recorded(t, file)
			var codelets []vmstructs.Codelet
			for i, snap := range rec.Snapshots {
				rec.Step(i)
				if c, ok := w.vm.Codelet(snap.Regs[w.cpu.PC]); ok && !slices.Contains(codelets, c) {
					codelets = append(codelets, c)
				}
			}
			do(t, rec, w, codelets)
		})
	}
}

// inCodelet finds the last occurrence of code in the codelet with this name in its description.
func inCodelet(t *testing.T, w *Walker, codelets []vmstructs.Codelet, name string, code ...byte) (pc uint64) {
	t.Helper()
	for _, c := range codelets {
		if at := bytes.LastIndex(w.vm.CodeletCode(c), code); at >= 0 && strings.Contains(w.vm.Describe(c), name) {
			return c.Begin + uint64(at)
		}
	}
	t.Fatalf("no % x in %s", code, name)
	return 0
}

// The numbers that DWARF gives to registers.
const (
	dwarfRDX, dwarfRBX, dwarfRBP, dwarfRSP, dwarfR13 = 1, 3, 6, 7, 13
)

// moveTo returns a copy of snap with the thread at another pc and at a higher stack pointer.
func moveTo(w *Walker, snap *process.Snapshot, pc, sp uint64) *process.Snapshot {
	s := *snap
	s.SP, s.Stack = sp, slices.Clone(snap.Stack[sp-snap.SP:])
	s.Regs[w.cpu.PC], s.Regs[dwarfRSP] = pc, sp
	return &s
}

// standing walks the threads that run in the codelet of a branch and whose interpreted frame was called by compiled
// code.
func standing(rec *captured.Recording, w *Walker, do func(snap *process.Snapshot, stack profile.Stack)) {
	eachWalk(rec, w, func(snap *process.Snapshot, stack *profile.Stack) {
		if c, ok := w.vm.Codelet(snap.Regs[w.cpu.PC]); ok && strings.HasPrefix(w.vm.Describe(c), "if") {
			do(snap, *stack)
		}
	})
}

// TestEntryBeforeSenderSP: after 'mov rbp, rsp' of a method's entry, the frame pointer is the frame's own, but the sp
// of its caller is not in the frame yet (templateInterpreterGenerator_x86.cpp, generate_fixed_frame). The sp of a
// compiled caller is not the word above the return address, because the adapter has put the arguments in between.
func TestEntryBeforeSenderSP(t *testing.T) {
	moved := 0
	rareRecordings(t, func(t *testing.T, rec *captured.Recording, w *Walker, codelets []vmstructs.Codelet) {
		pc := inCodelet(t, w, codelets, "zerolocals", 0x55, 0x48, 0x8b, 0xec, 0x41, 0x55) + 4
		standing(rec, w, func(snap *process.Snapshot, stack profile.Stack) {
			fp := snap.Regs[dwarfRBP]
			stopped := moveTo(w, snap, pc, fp)
			stopped.Regs[dwarfR13], _ = w.slot(fp, w.vm.Interp().SenderSP)
			stopped.Regs[dwarfRBX], _ = w.slot(fp, w.vm.Interp().Method)
			if stopped.Regs[dwarfR13] != fp+16 {
				moved++
			}
			var again profile.Stack
			w.Walk(stopped, &again)
			if again.Truncated != profile.Whole || again.Frames[0].Func != stack.Frames[0].Func ||
				!slices.Equal(again.Frames[1:], stack.Frames[1:]) {
				t.Errorf("%v, %d frames, want %d", again.Truncated, len(again.Frames), len(stack.Frames))
			}
		})
	})
	if moved == 0 {
		t.Error("no caller whose sp is elsewhere")
	}
}

// TestExceptionAsksForHandler: an exception leaves an interpreted method, and its caller is compiled. From the end of
// the frame until the jump to the handler, the frame pointer is the caller's (templateInterpreterGenerator_x86.cpp,
// generate_throw_exception).
func TestExceptionAsksForHandler(t *testing.T) {
	tried := 0
	rareRecordings(t, func(t *testing.T, rec *captured.Recording, w *Walker, codelets []vmstructs.Codelet) {
		pop := inCodelet(t, w, codelets, "exception handling", 0x5a, 0x48, 0x8b, 0xe3) // pop rdx; mov rsp, rbx
		standing(rec, w, func(snap *process.Snapshot, stack profile.Stack) {
			fp := snap.Regs[dwarfRBP]
			sender, _ := w.slot(fp, w.vm.Interp().SenderSP)
			gone := *snap
			gone.Regs[dwarfRBX] = sender
			gone.Regs[dwarfRBP], _ = w.slot(fp, 0)
			beforePop := moveTo(w, &gone, pop, fp+8)
			gone.Regs[dwarfRDX], _ = w.slot(fp, 1)
			for _, stopped := range []*process.Snapshot{beforePop, moveTo(w, &gone, pop+1, fp+16),
				moveTo(w, &gone, pop+4, sender)} {
				var again profile.Stack
				w.Walk(stopped, &again)
				if again.Truncated != profile.Whole || !slices.Equal(again.Frames, stack.Frames[1:]) {
					t.Errorf("at %#x: %v, %d frames, want %d", stopped.Regs[w.cpu.PC]-pop, again.Truncated, len(again.Frames),
						len(stack.Frames)-1)
				}
				tried++
			}
		})
	})
	if tried < 6 {
		t.Errorf("only %d stops", tried)
	}
}

// TestDeoptBlobSavesRegisters: while the deoptimisation blob saves registers, its code does not show how it returns,
// but the frame pointer points to its whole frame. If the frame is not there, the stack ends.
func TestDeoptBlobSavesRegisters(t *testing.T) {
	tried := 0
	rareRecordings(t, func(t *testing.T, rec *captured.Recording, w *Walker, _ []vmstructs.Codelet) {
		var blob *vmstructs.Blob
		for i, snap := range rec.Snapshots {
			rec.Step(i)
			if b, err := w.vm.Blob(snap.Regs[w.cpu.PC]); err == nil && b.Kind == vmstructs.Deopt {
				blob = b
			}
		}
		if blob == nil {
			return // no thread of this recording was in the blob
		}
		standing(rec, w, func(snap *process.Snapshot, stack profile.Stack) {
			k := slices.IndexFunc(stack.Frames, func(f profile.Frame) bool { return w.compiledReturn(f.PC) })
			caller := stack.Frames[k].SP
			stopped := *snap
			stopped.SP = caller - uint64(blob.FrameSize)*8
			missing := int64(snap.SP - stopped.SP)
			stopped.Stack = slices.Concat(make([]byte, max(missing, 0)), snap.Stack[max(-missing, 0):])
			binary.LittleEndian.PutUint64(stopped.Stack[caller-8-stopped.SP:], stack.Frames[k].PC)
			stopped.Regs[dwarfRSP] = stopped.SP
			for pc := blob.Begin; pc < blob.End; pc++ {
				if r := w.exitAt(blob, pc); r.ok || !r.framed {
					continue
				}
				for _, off := range []uint64{0, 16} {
					stopped.Regs[w.cpu.PC], stopped.Regs[dwarfRBP] = pc, caller-16-off
					w.snap, w.out = &stopped, new(profile.Stack)
					w.begin()
					why := w.stepDeopt(blob)
					if off == 0 && (why != profile.Whole || w.cur.pc != stack.Frames[k].PC || w.cur.sp != caller) ||
						off != 0 && why != profile.Deoptimizing {
						t.Fatalf("at %#x, %d: %v, %#x", pc-blob.Begin, off, why, w.cur.pc)
					}
				}
				tried++
			}
		})
	})
	if tried < 20 {
		t.Errorf("only %d places", tried)
	}
}

// TestSkippedFrames: an interpreted frame has saved the frame pointer of a frame further down, but its return address
// and stack pointer are right. The stack ends there, and does not skip the frames in between (churn, one stack in
// 160,000).
func TestSkippedFrames(t *testing.T) {
	planted := 0
	files := recordings(t, "walks")
	for _, file := range files {
		rec, w := recorded(t, file)
		for i, snap := range rec.Snapshots {
			rec.Step(i)
			var stack, again profile.Stack
			w.Walk(snap, &stack)
			fps, ok := threeInterpreted(w, snap, &stack)
			if !ok {
				continue
			}
			planted++
			s := *snap
			s.Stack = slices.Clone(snap.Stack)
			binary.LittleEndian.PutUint64(s.Stack[fps[0]-snap.SP:], fps[2])
			w.Walk(&s, &again)
			if again.Truncated != profile.BadInterpreted || len(again.Frames) != 1 ||
				again.Frames[0].Func != stack.Frames[0].Func {
				t.Errorf("%s: %v, %d frames", filepath.Base(file), again.Truncated, len(again.Frames))
			}
		}
	}
	if planted < 20 {
		t.Errorf("only %d stacks have three interpreted frames on top", planted)
	}
}

// threeInterpreted returns the frame pointers of the three top frames, if these are interpreted.
func threeInterpreted(w *Walker, snap *process.Snapshot, stack *profile.Stack) (fps [3]uint64, ok bool) {
	fp := snap.Regs[dwarfRBP]
	for i := range fps {
		if len(stack.Frames) < 5 || stack.Frames[i].Kind != profile.Interpreted || !w.inCopy(fp) {
			return fps, false
		}
		fps[i] = fp
		fp, _ = w.slot(fp, 0)
	}
	sender, _ := w.slot(fps[0], w.vm.Interp().SenderSP)
	return fps, sender == stack.Frames[1].SP // if they differ, the top method has no frame yet
}

// TestFrameAboutToBeReplaced: when JDK 8 enters an OSR method, its branch keeps the nmethod in place of the bytecode
// pointer (templateTable_x86_64.cpp). An nmethod of another method does not count.
func TestFrameAboutToBeReplaced(t *testing.T) {
	tried := 0
	rareRecordings(t, func(t *testing.T, rec *captured.Recording, w *Walker, _ []vmstructs.Codelet) {
		standing(rec, w, func(snap *process.Snapshot, stack profile.Stack) {
			fp := snap.Regs[dwarfRBP]
			addr, _ := w.slot(fp, w.vm.Interp().Method)
			m, err := w.vm.Method(addr)
			if err != nil {
				t.Fatal(err)
			}
			blob := recordedNmethod(w, stack)
			if blob == nil {
				return
			}
			before := *blob
			defer func() { *blob = before }()
			blob.OSR, blob.EntryBCI = true, 1
			stopped := *snap
			stopped.Stack = slices.Clone(snap.Stack)
			stopped.Regs[dwarfR13] = blob.Addr
			slot := fp + uint64(int64(w.vm.Interp().BCP)*8)
			binary.LittleEndian.PutUint64(stopped.Stack[slot-snap.SP:], blob.Addr)
			var again profile.Stack
			if w.Walk(&stopped, &again); again.Truncated != profile.BadInterpreted {
				t.Errorf("another method's nmethod: %v", again.Truncated)
			}
			blob.Method = m
			w.Walk(&stopped, &again)
			if again.Truncated != profile.Whole || again.Frames[0].Func != stack.Frames[0].Func || again.Frames[0].BCI != 1 {
				t.Errorf("%v, %d frames of %d", again.Truncated, len(again.Frames), len(stack.Frames))
			}
			tried++
		})
	})
	if tried == 0 {
		t.Error("no branch with the header of a caller's nmethod")
	}
}

// recordedNmethod returns the nmethod of a frame's caller, if the recording has its header.
func recordedNmethod(w *Walker, stack profile.Stack) *vmstructs.Blob {
	for _, f := range stack.Frames {
		if b, err := w.vm.Blob(f.PC); err == nil && b.Kind == vmstructs.Nmethod {
			if at, err := w.vm.BlobAt(b.Addr); err == nil {
				return at
			}
		}
	}
	return nil
}
