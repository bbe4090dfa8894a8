// Package output writes profiles and their accounts as files. It reads profiles back for code that shows them. It
// depends on package profile alone and builds on any operating system.
//
// Names come from the target and may be malicious. No name can put a line break or a separator into a file. All input
// is bounded.
package output
