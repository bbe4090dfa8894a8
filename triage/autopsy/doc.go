// Package autopsy judges a dead JVM. It takes a dump of the JVM's core file (package postmortem, with locks) and other
// facts of the core, and returns a profile.Triage. The cause of death is judged by the rules for crash files (package
// hserr), because a core has the same facts. Other findings come from rules that need only one moment. Findings that
// need two moments are listed as not known.
//
// The package reads nothing else.
package autopsy
