// Package output writes profiles and their accounts as files. It reads profiles back for the code that shows them.
// It depends on package profile alone and builds on any operating system.
//
// Names come from the target and are hostile. No name can bring a line break or a separator into what is written.
// What is read is bounded in every dimension.
package output
