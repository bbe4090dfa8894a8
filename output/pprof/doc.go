// Package pprof writes and reads profiles in pprof's format (profile.proto, gzip), with pprof's own library.
//
// Each physical frame of a thread is one Location. Methods that a compiler inlined into it are its Lines, the innermost
// first. Lines have their numbers. A sample has two values, samples and nanoseconds, and the labels thread, tid,
// virtual and state. The format has no place for bytecode indices and levels of compilation.
//
// Memory grows with the number of different stacks, and is bounded. Input files are not trusted: their size is bounded
// before and after they are unpacked, and the error Bad says what is wrong with a file.
package pprof
