// Package autopsy judges a JVM that is dead. It takes a dump of its core file (package postmortem, with its locks) and
// other facts from the core, and returns a profile.Triage. The end of the JVM is judged like a crash file (package
// hserr), because the core has the same facts. Other findings come from rules for which one moment is enough. Findings
// that need two moments are listed as not known.
//
// The package reads nothing else.
package autopsy
