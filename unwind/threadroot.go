package unwind

import "goprof/vmstructs"

// A thread begins in its C library. glibc's unwind rules mark this end. musl is built without unwind rules (its
// configure: -fno-unwind-tables). But the lowest frame of a musl thread is always that of the function that calls the
// thread's own function (src/thread/pthread_create.c, start), or the program's main. So the walk recognises the root,
// which otherwise would look like a gap.

// programEntry is the first of the program's own functions that a C library calls.
const programEntry = "main"

// muslStart bounds the stack that start uses, with its arguments (struct start_args).
const muslStart = 512

// beganHere reports whether the thread began in the frame that was emitted last, in a C library without unwind rules.
// If the thread has Java frames further down, beganHere returns false, because then another library without rules has a
// function with that name.
func (w *Walker) beganHere() bool {
	n := len(w.out.Frames)
	if w.cur.exact || !w.cur.byRules || n < 2 || w.anchor.SP > w.cur.sp {
		return false
	}
	stack, begin := w.snap.Stack, w.snap.SP
	if len(w.snap.Under) > 0 {
		stack, begin = w.snap.Under, w.snap.UnderSP
	}
	atTop := !w.snap.Cut && begin+uint64(len(stack))-w.cur.sp <= muslStart
	first := w.out.Frames[n-2].Func.Name
	return atTop || first == programEntry || vmstructs.BeginsThread(first)
}
