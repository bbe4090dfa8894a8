// Package memory finds out what each resident page of a JVM is for.
//
// The kernel lists the mappings, and the pages that are in memory. The JVM's structures show the purpose of its
// addresses (package vmstructs). Headers of malloc show which addresses are malloc's. goprof stops no thread, and does
// not use the JVM's own tools. Apart from the JVM's structures, only pages that are in memory are read.
//
// It reads /proc/PID/pagemap rather than smaps: smaps holds the lock of the address space while it walks a whole
// mapping, and every mmap, munmap and many page faults of the program wait for that.
//
// Memory without a known purpose is a part of its own. So the sum of the parts is the whole resident memory that was
// counted.
package memory
