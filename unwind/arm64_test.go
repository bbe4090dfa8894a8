package unwind

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goprof/process"
	"goprof/profile"
)

// TestRecordedArm64 replays walks of arm64 JVMs on any machine, with and without signed return addresses.
// scripts/arm64-walks.sh recorded them (testdata/oracle, TestRecordShadow and others). The stacks must be those of
// the recording.
func TestRecordedArm64(t *testing.T) {
	files, _ := filepath.Glob("testdata/arm64/*.walks")
	walks, whole := 0, 0
	kinds, signed := map[profile.Kind]int{}, map[bool]int{}
	for _, file := range files {
		if strings.HasPrefix(filepath.Base(file), "virtual-") {
			continue // TestRecordedVirtual replays these
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			rec, w := recorded(t, file)
			var text bytes.Buffer
			eachWalk(rec, w, func(snap *process.Snapshot, stack *profile.Stack) {
				writeStack(&text, snap, stack)
				if stack.Carrier > 0 {
					fmt.Fprintf(&text, "  virtual %d %q, carrier from %d\n", stack.Virtual.ID, stack.Virtual.Name, stack.Carrier)
				}
				walks++
				signed[snap.PACMask != 0]++
				for _, f := range stack.Frames {
					kinds[f.Kind]++
				}
				if stack.Truncated == profile.Whole {
					whole++
				}
			})
			compareGolden(t, strings.TrimSuffix(file, ".walks")+".golden.gz", text.Bytes())
		})
	}
	t.Logf("%d walks, %d whole, with pointer authentication and without: %v", walks, whole, signed)
	if walks < 600 || whole < walks*99/100 || signed[true] < 250 || signed[false] < 250 {
		t.Errorf("%d walks, %d whole, with and without pointer authentication: %v", walks, whole, signed)
	}
	for _, kind := range []profile.Kind{profile.Interpreted, profile.C1, profile.C2, profile.Inlined, profile.NativeMethod,
		profile.Stub, profile.Native} {
		if kinds[kind] == 0 {
			t.Errorf("no frame of kind %v", kind)
		}
	}
}

// TestSignaturesWithoutMask: the kernel reports to a tracer which bits are a signature, but not to perf. The same bits
// follow from the end of the target's memory.
func TestSignaturesWithoutMask(t *testing.T) {
	stacks := func(prepare func(w *Walker, snap *process.Snapshot)) string {
		rec, w := recorded(t, "testdata/arm64/shadow-jdk25-pauth.walks")
		for _, snap := range rec.Snapshots {
			prepare(w, snap)
		}
		var text bytes.Buffer
		eachWalk(rec, w, func(snap *process.Snapshot, stack *profile.Stack) { writeStack(&text, snap, stack) })
		return text.String()
	}
	told := stacks(func(w *Walker, _ *process.Snapshot) { w.MemoryEnds(1 << 55) })
	if untold := stacks(func(w *Walker, snap *process.Snapshot) {
		w.MemoryEnds(1<<48 - 4096)
		snap.PACMask = 0
	}); untold != told {
		t.Error("where the memory ends tells other stacks than the kernel's mask does")
	}
	if wrong := stacks(func(w *Walker, snap *process.Snapshot) {
		w.MemoryEnds(1 << 55)
		snap.PACMask = 0
	}); wrong == told {
		t.Error("nothing is signed here")
	}
}

// TestNativeHasJustReturned: the interpreter has called C, and C has just returned. No register identifies the method
// of that call: the method's register has whatever C left there, and the link register still has the address to which C
// returned.
func TestNativeHasJustReturned(t *testing.T) {
	files, _ := filepath.Glob("testdata/arm64/kinds-*.walks")
	for _, file := range files {
		returned := 0
		rec, w := recorded(t, file)
		eachWalk(rec, w, func(snap *process.Snapshot, stack *profile.Stack) {
			for i, f := range stack.Frames {
				codelet, ok := w.vm.Codelet(f.PC)
				if !ok || f.Kind != profile.NativeMethod {
					continue
				}
				fp := f.SP
				for !w.hasMethod(fp) || !w.hasCaller(fp) {
					if fp += 8; !w.inCopy(fp) {
						t.Fatalf("%s: no frame of %s", file, f.Func.Name)
					}
				}
				caller, _ := w.word(fp)
				another, _ := w.slot(caller, w.vm.Interp().Method)
				for _, left := range []uint64{another, 0xdecf0488} {
					s := *snap
					s.SP, s.Stack = f.SP, snap.Stack[f.SP-snap.SP:]
					s.Regs[w.cpu.PC], s.Regs[w.cpu.SP], s.Regs[w.cpu.FP], s.Regs[w.cpu.LR], s.Regs[w.java.Method] = f.PC, f.SP, fp,
						f.PC, left
					var got profile.Stack
					w.Walk(&s, &got)
					if got.Truncated != profile.Whole || !slices.Equal(got.Frames, stack.Frames[i:]) {
						t.Errorf("%s: %s in %v: %v, %d frames of %d\n%v\n%v", file, f.Func.Name, codelet, got.Truncated, len(got.Frames),
							len(stack.Frames)-i, got.Frames, stack.Frames[i:])
					}
					returned++
				}
			}
		})
		if returned == 0 {
			t.Errorf("%s: nobody has called C from the interpreter", file)
		}
	}
}
