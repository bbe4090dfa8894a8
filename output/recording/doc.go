// Package recording reads recordings of any kind as samples: collapsed stacks, pprof and JFR, ours and those that others
// wrote. What shows or converts a recording takes a Source, and asks for nothing of the file's format.
package recording
