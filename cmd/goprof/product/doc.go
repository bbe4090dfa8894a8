//go:build linux

// Package product makes the file of a recording, in any format. A JFR file grows during the recording, other files are
// made at its end. A file appears under its name only when there are samples. If names must not be shown, Redacted
// replaces them before the product gets them.
package product
