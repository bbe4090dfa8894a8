// Package output writes profiles and their accounts as files. It reads profiles back for code that shows them. It
// depends on package profile alone and builds on any operating system.
//
// Names come from the target and are hostile. No name can put a line break or a separator into a file. Everything that
// is read is bounded.
package output
