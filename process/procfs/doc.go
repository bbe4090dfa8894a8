// Package procfs reads the files that the kernel writes under /proc. All of goprof reads them here, so one place says
// what a field means, where it stands and what can be wrong with it.
//
// Most functions take the text of a file and allocate nothing: the sampler reads thousands of these files a second
// through descriptors and a buffer of its own. Code that needs a file only now and then calls Read, ReadStat or
// ReadStatus, which open it.
//
// A process chooses some of what stands in these files: the name of a thread may hold brackets, blanks, newlines and
// any other byte. No function mistakes a part of a name for something that the kernel said, and none fails on any text.
// Text that does not parse is 0, empty or not ok. The package knows nothing of Java. The caller decides which process
// is read.
package procfs
