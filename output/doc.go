// Package output writes profiles, summaries and dumps as files, and reads profiles back
// for what shows them. It depends on package profile alone and builds on any
// operating system.
//
// Names come from the target and are hostile: what is written can hold no line break or
// separator of theirs, and what is read is bounded in every dimension.
package output
