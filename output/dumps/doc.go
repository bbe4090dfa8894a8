// Package dumps writes looks at all threads of a JVM, one or several, and what threads hold and wait for: as text, as
// JSON, and in the form of jstack.
//
// Names come from the target and are hostile: see package output.
package dumps
