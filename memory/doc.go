// Package memory says where the resident memory of a JVM is: each page of the process, by what it is for.
//
// The kernel lists the mappings, and says of each page whether it is in memory. The JVM's structures say which
// addresses it has for what (package vmstructs). Headers of malloc say which are malloc's. Nothing is stopped, nothing
// is asked of the JVM. Of other memory than the JVM's structures no page is read that is not in memory.
//
// It reads /proc/PID/pagemap rather than smaps: smaps holds the lock of the address space while it walks a whole
// mapping, and every mmap, munmap and many page faults of the program wait for that.
//
// The sum of the parts is all that was counted. What has no name is a part of its own.
package memory
