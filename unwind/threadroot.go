package unwind

import "goprof/vmstructs"

// A thread begins in its C library. glibc's unwind rules end there, and say so. musl is built without any
// (its configure: -fno-unwind-tables), but its part of a stack is no more than the function that calls the
// thread's own (src/thread/pthread_create.c, start), or the program's main. By that it is told from a gap.

// programEntry is what a C library calls as the first of a program's own thread.
const programEntry = "main"

// muslStart bounds what start takes of the stack, and what it is given there (struct start_args).
const muslStart = 512

// beganHere reports whether the frame that was emitted last, one without unwind rules, is that of the C library that
// the thread began in. While Java is still above it is not: somebody's library without rules has called a function of
// such a name.
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
