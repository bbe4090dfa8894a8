// Package vitals reads the state of a JVM and its machine. Heap, collections, safepoints, code cache, classes and
// threads are read from the JVM's structures. The state of the process, its control group and the machine is read from
// the kernel.
//
// No thread is stopped, and the JVM is not asked to do anything. So goprof can read a JVM that hangs. The JVM's
// counters for jstat are read from its memory, not from its files.
//
//	v, err := vitals.Open(session)
//	before, err := v.Read()
//	...
//	after, err := v.Read()
//	rates := vitals.Between(before, after)
//
// A fact that could not be read is not known (maybe.Value), never zero. Which facts are known depends on the release of
// the JVM, its collector, its flags (-XX:-UsePerfData keeps no counters), whether its libjvm.so has symbols, the
// kernel, and goprof's rights. Each field names its source.
//
// The target is not trusted. Every read is bounded, and a number that cannot be true counts as not known. Texts may
// hold any rune: code that prints them must clean them (output.Printable).
package vitals
