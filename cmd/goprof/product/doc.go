//go:build linux

// Package product makes the files of recordings. Files says which files a user wants, and Reserve opens those of one
// recording before it begins: a name that cannot be written must not cost a recording. Outputs are these files: the
// product, in any format, and the account. A JFR file grows during the recording, other files are made at its end. A
// file appears under its name only when there are samples. Where names must not be shown, they are replaced before
// the product gets them. An account whose place goprof chooses replaces no file but an older account of the same
// stacks.
package product
