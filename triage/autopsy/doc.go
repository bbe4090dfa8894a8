// Package autopsy judges a JVM that is dead: a dump of its core file, and what else the core tells -> findings. The
// end of the JVM is judged as a crash file is (package hserr): the core tells what such a file would say. Other
// findings come from rules for which one moment is enough. Findings that need two moments are listed as not known.
//
// What you give: a dump of package postmortem with its locks, and its facts. What you get: a profile.Triage. The
// package reads nothing else.
package autopsy
