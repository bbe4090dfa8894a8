// Package hprof writes heap dumps in the HPROF binary format, "JAVA PROFILE 1.0.2", which Eclipse MAT, VisualVM, jhat
// and others read. The JDK describes the format in services/heapDumper.cpp.
//
// A Writer writes the parts in the order in which they come. Names, classes, frames and traces come first, then, from
// the first Class, root or object on, what the heap holds: the reader of VisualVM takes nothing else for a heap. The
// Writer knows nothing of a JVM, and keeps nothing but one segment. The first error that writing meets is kept, and
// Close returns it.
package hprof
