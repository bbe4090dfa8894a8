// Package hprof writes heap dumps in the HPROF binary format, "JAVA PROFILE 1.0.2", which Eclipse MAT, VisualVM, jhat
// and others read. The JDK describes the format in services/heapDumper.cpp.
//
// A Writer writes the parts in the order in which they come. Names, classes, frames and traces come first. From the
// first Class, root or object on, the content of the heap follows, and nothing else: VisualVM's reader demands that.
// The Writer knows nothing of a JVM, and keeps only one segment. It keeps the first error of writing, and Close returns
// it.
package hprof
