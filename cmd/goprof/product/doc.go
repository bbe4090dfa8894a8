//go:build linux

// Package product makes the files of recordings. Files says which files a user wants. Reserve opens those of one
// recording before it begins, so that a name that cannot be written does not cost a recording. Outputs are these files:
// the product, in any format, and the account. A JFR file grows during the recording, other files are made at its end.
// A file gets its name only when there are samples. Names that must be hidden are replaced before the product gets
// them. An account with a default name replaces only an older account of the same stacks.
package product
