// Package hserr reads the file that HotSpot leaves when it crashes (hs_err_pid1234.log, JDK 8 to 27), and explains it
// in plain words.
//
// Parse parses such a file. Judge makes findings from it, as in a triage. The file is not trusted: lines, lists and
// numbers are bounded, and a fact that is missing is not known. Nothing of the command line, the environment or the
// system properties is kept, because they hold passwords. The package starts nothing and reads nothing else.
package hserr
