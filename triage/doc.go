// Package triage judges what was seen of a JVM: it says what is wrong, in order of likelihood, with the evidence.
//
// It looks at nothing itself and has no state: Judge takes Evidence, which package examine gathers, and returns a
// profile.Triage. So each rule can be tried with evidence that a test makes up.
//
// A false alarm is worse than silence. A rule reports a disease only where its threshold, which stands with its reason
// in the rule's file, is well passed for all of the time that was looked at. A rule that lacks a fact it needs says so
// (profile.Unknown); it never takes a fact that is not known for zero.
//
// All text may hold names of the target. Code that prints it must clean it (output.CleanName, output.Printable).
package triage
