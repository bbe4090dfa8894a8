// Package postmortem looks at a JVM that is dead, or was copied: at its core file. It wires process, vmstructs, unwind
// and profile together, as package session does for a live JVM. The walker is the same. Registers come from the notes
// of the core. Nothing moves: facts that session reads twice, or proves afterwards, cannot change here.
//
// It takes an open core file, and the folders with the files that the core does not hold. It returns a profile.Dump. A
// core of no JVM, or of one that cannot be read, is an error; a stack that cannot be walked to its root ends with its
// reason. It runs on any operating system and any CPU, for cores of either CPU.
package postmortem
