// Package autopsy judges a JVM that is dead: a dump of its core file, and what else the core tells -> findings. What
// ended it is judged as the file of a crash is (package hserr), with what such a file would say taken from the core;
// the rest by rules that one moment is enough for. What needs two moments is listed as not known.
//
// What you give: a dump of package postmortem with its locks, and its facts. What you get: a profile.Triage. It is
// pure.
package autopsy
