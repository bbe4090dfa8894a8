// Package memory finds out what each resident page of a JVM is for.
//
// The kernel lists the mappings, and the pages that are in memory. The JVM's structures show the purpose of its
// addresses (package vmstructs). Headers of malloc show which addresses are malloc's. goprof stops no thread, and does
// not use the JVM's own tools. Apart from the JVM's structures, it reads only pages that are in memory.
//
// It reads /proc/PID/pagemap rather than smaps. A reader of smaps holds the lock of the address space during the walk
// of a whole mapping. Each mmap, each munmap and many page faults of the program wait for this lock.
//
// Memory without a known purpose is a part of its own. So the parts add up to all resident memory that was counted.
package memory
