// Package procfs reads the kernel's files under /proc. No other package knows their formats.
//
// Most functions take the text of a file and allocate nothing, because the sampler reads thousands of these files a
// second, with its own descriptors and buffer. Code that rarely needs a file calls Read, ReadStat or ReadStatus, which
// open it.
//
// A process chooses some of the text in these files: the name of a thread may contain brackets, blanks, newlines and
// any other byte. No function confuses part of a name with a field of the kernel, and none panics on any text. The
// result for text that does not parse is 0, empty or not ok.
package procfs
