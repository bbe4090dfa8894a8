// Package heapdump makes a heap dump of a core file, or of a JVM whose threads are all stopped. Package vmstructs reads
// classes, objects and roots, and package output/hprof writes them. Neither keeps objects. So goprof's memory grows
// with the classes of the JVM, not with its heap.
//
// The dump has all objects of the heap, including garbage. An object's address is its identifier. Objects that could
// not be read are not in the dump, and the Result counts them by reason. If some references may not lead to their
// objects (vmstructs.ErrMoving, ErrNotDumped), there is no dump.
//
// Roots on stacks are conservative: each word of a thread's stack and registers that is the address of an object counts
// as a reference. So the dump may keep an object alive that the program no longer uses. Handles of native code in outer
// frames are not known (vmstructs.LocalHandles): an object that only such a handle keeps alive looks dead.
package heapdump
