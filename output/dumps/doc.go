// Package dumps writes dumps of all threads of a JVM, with the locks that threads hold and wait for: as text, as JSON,
// and in the form of jstack.
//
// Names come from the target and may be malicious: see package output.
package dumps
