// Package postmortem reads the core file of a JVM that has died, or that a tool has copied (gcore). It connects
// process, vmstructs, unwind and profile, as package session does for a live JVM. The walker is the same. Registers
// come from the notes of the core. A core does not change, so nothing is read twice or proven afterwards.
//
// It takes an open core file, and the folders with the files that the core does not hold. It returns a profile.Dump. It
// returns an error if the core is not of a JVM, or if the JVM's data cannot be read. A stack that cannot be walked to
// its root ends with a reason. The package runs on any operating system and any CPU, for cores of either CPU.
package postmortem
