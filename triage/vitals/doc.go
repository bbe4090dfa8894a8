// Package vitals reads the state of a JVM and its machine. The JVM's structures have the state of the heap,
// collections, safepoints, code cache, classes and threads. The kernel has that of the process, its control group and
// the machine.
//
// No thread is stopped, and nothing is asked of the JVM. So a JVM that hangs can be read, too. The JVM's counters for
// jstat are read from its memory, not from its files.
//
//	v, err := vitals.Open(session)
//	before, err := v.Read()
//	...
//	after, err := v.Read()
//	rates := vitals.Between(before, after)
//
// A fact that could not be read is not known (maybe.Value), never zero. Which facts are known depends on the release
// of the JVM, its collector, its flags (-XX:-UsePerfData keeps no counters), whether its libjvm.so has symbols, on the
// kernel, and on what goprof may read. Each field says where it comes from.
//
// The target is not trusted. Every read is bounded, and a number that cannot be true counts as not known. Texts may
// hold any rune: code that prints them must clean them (output.Printable).
package vitals
