// Package heap counts what fills the heap of a JVM, by class, while the JVM runs: it stops no thread, and asks the JVM
// for nothing. Package vmstructs finds the areas of the heap and the objects in them. This package decides how much of
// the heap is read, and what the numbers of a sample say about all.
//
// The counts contain garbage. Numbers of a part that was read as a whole are exact at the moment of the reading. Others
// are estimates with an error.
//
// Memory that could not be read as objects is counted separately, by reason. An error means that nothing was read.
package heap
