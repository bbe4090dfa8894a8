// Package pprof writes and reads profiles of pprof's format (profile.proto, gzip), by the library of pprof itself.
//
// Each physical frame of a thread is one Location. Methods that a compiler inlined into it are its Lines, the
// innermost first. Lines have their numbers. A sample has two values, samples and nanoseconds, and the labels
// thread, tid, virtual and state. Byte code indices and levels of compilation have no place in the format.
//
// Memory grows with the number of different stacks, and is bounded. A file that is read is foreign input: its size
// is bounded before and after it is unpacked, and Bad says what is wrong with it.
package pprof
