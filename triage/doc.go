// Package triage judges the state of a JVM. It says what is wrong, the likeliest first, with the evidence.
//
// The package reads nothing and has no state. Judge takes Evidence, which package examine gathers, and returns a
// profile.Triage. So a test can check each rule with invented evidence.
//
// A false alarm is worse than silence. Each rule has a threshold; the rule's file gives the reason for it. A rule
// reports a disease only if the threshold is clearly passed during the whole observed time. If a fact that a rule needs
// is not known, the rule says so (profile.Unknown). It never uses zero in its place.
//
// All text may hold names of the target. Code that prints it must clean it (output.CleanName, output.Printable).
package triage
