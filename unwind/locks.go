package unwind

import (
	"cmp"
	"slices"
	"strings"

	"goprof/profile"
	"goprof/profile/naming"
	"goprof/vmstructs"
)

// LockFrames returns the physical Java frames that are on the thread's own stack. Methods that are inlined into each
// other share a frame.
func LockFrames(frames []profile.Frame, interpreted []InterpretedFrame,
	th vmstructs.Thread) (out []vmstructs.LockFrame) {
	low, high := th.StackBase-th.StackSize, th.StackBase
	at := 0
	for i := 0; i < len(frames); {
		f, end := &frames[i], i+1
		for end < len(frames) && frames[end-1].Kind == profile.Inlined && frames[end].PC == f.PC && frames[end].SP == f.SP {
			end++
		}
		first := i
		i = end
		if !frames[end-1].Kind.Java() || f.SP < low || f.SP >= high || f.PC == 0 || end >= len(frames) {
			continue
		}
		p := vmstructs.LockFrame{First: first, Count: end - first, SP: f.SP, PC: f.PC,
			Return: frames[end].PC, End: frames[end].SP, Saved: f.SP - 16,
			Task: slices.ContainsFunc(frames[first:end], computes)}
		if n := len(out); n > 0 && out[n-1].FP != 0 && out[n-1].First+out[n-1].Count == first {
			p.Saved = out[n-1].FP
		}
		for at < len(interpreted) && interpreted[at].At < first {
			at++
		}
		if at < len(interpreted) && interpreted[at].At == first {
			p.FP, p.Method = interpreted[at].FP, interpreted[at].Method
		} else if frames[end-1].Kind == profile.Interpreted {
			continue // the frame was being built
		}
		if n := len(out); p.End <= p.SP || p.End > high || n > 0 && p.SP < out[n-1].SP {
			continue
		}
		out = append(out, p)
	}
	return out
}

// computes reports whether a method computes a CompletableFuture. In JDK 8, tryFire calls methods of CompletableFuture,
// so tryFire is on the stack, too.
func computes(f profile.Frame) bool {
	if f.Func == nil {
		return false
	}
	name, of := strings.CutPrefix(f.Func.Name, "java.util.concurrent.CompletableFuture$")
	return of && (strings.HasSuffix(name, ".run") || strings.HasSuffix(name, ".tryFire"))
}

// LockOf converts a lock to package profile's type. The kinds have the same order.
func LockOf(l *vmstructs.Lock) profile.Lock {
	out := profile.Lock{Kind: profile.LockKind(l.Kind)}
	if l.Class != "" {
		out.Class = naming.ClassOf(l.Class)
	}
	out.ID = cmp.Or(l.Object, l.Monitor) // while the collector moves the object, the monitor identifies it
	return out
}

// HeldLockOf converts a held lock to package profile's type. A thread that initialises a class holds this lock in the
// frame of the class's static initialiser.
func HeldLockOf(h *vmstructs.Held, stack *profile.Stack) profile.HeldLock {
	held := profile.HeldLock{Lock: LockOf(&h.Lock), Frame: h.Frame}
	if held.Kind == profile.ClassInit {
		held.Frame = slices.IndexFunc(stack.Frames, func(f profile.Frame) bool {
			return f.Func != nil && f.Kind.Java() && f.Func.Name == held.Class+".<clinit>"
		})
	}
	if held.Frame >= len(stack.Frames) {
		held.Frame = -1
	}
	return held
}
