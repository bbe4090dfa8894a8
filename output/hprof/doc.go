// Package hprof writes heap dumps in the HPROF binary format, "JAVA PROFILE 1.0.2", which Eclipse MAT, VisualVM, jhat
// and others read. The JDK describes the format in services/heapDumper.cpp.
//
// A Writer writes the parts in the order of the calls. Names, classes, frames and traces come first. After the first
// Class, root or object, only contents of the heap may follow: VisualVM's reader demands that. The Writer knows nothing
// of a JVM, and has only one segment in memory. Close returns the first error of writing.
package hprof
