// Package hserr reads the file that HotSpot leaves when it crashes (hs_err_pid1234.log, JDK 8 to 27), and says in plain
// words what it means.
//
// Parse takes such a file apart. Judge makes findings of it, as a triage has them. The file is not trusted: lines,
// lists and numbers are bounded, and what is not there is not known. Nothing of the command line, the environment or
// the system properties is kept, because they hold passwords. The package starts nothing and reads nothing else.
package hserr
