// Package recording reads recordings of any kind as samples: collapsed stacks, pprof and JFR, by goprof and by other
// tools. Code that shows or converts a recording takes a Source, and need not know the file's format.
//
// Open recognises formats by the content of a file, not by its name. Filter is a Source around a Source. Sum and TreeOf
// make one profile of all samples.
//
// A file is foreign input. A fault in it is an *output.BadFile, *jfr.BadRecording or *pprof.Bad. Lacks is the error if
// a file does not hold what was asked for. IsBad reports any of these. Every sample of Open's files has at least one
// frame.
package recording
