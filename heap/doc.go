// Package heap counts what fills the heap of a running JVM, by class. It stops no thread, and does not use the JVM's
// own tools. Package vmstructs finds the areas of the heap and the objects in them. This package decides how much of
// the heap is read, and estimates the numbers of the whole heap from a sample.
//
// The counts include garbage. If the heap, or a part such as the old generation, was read as a whole, its numbers are
// exact at the moment of the reading. Other numbers are estimates with an error.
//
// Memory that could not be read as objects is counted separately, by reason. An error means that nothing was read.
package heap
