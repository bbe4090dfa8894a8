// Package pprof writes and reads profiles in pprof's format (profile.proto, gzip), with pprof's own library.
//
// Each physical frame of a thread is one Location. Methods that a compiler inlined into it are its Lines, the
// innermost first. Lines have their numbers. A sample has two values, samples and nanoseconds, and the labels
// thread, tid, virtual and state. Byte code indices and levels of compilation have no place in the format.
//
// Memory grows with the number of different stacks, and is bounded. A file that is read is not trusted: its size is
// bounded before and after it is unpacked, and the error Bad says what is wrong with it.
package pprof
