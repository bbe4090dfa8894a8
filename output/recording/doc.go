// Package recording reads recordings of any kind as samples: collapsed stacks, pprof and JFR, ours and those that
// others wrote. What shows or converts a recording takes a Source, and asks for nothing of the file's format.
//
// Open tells formats apart by what is in a file, not by its name. Filter is a Source around a Source. Sum and TreeOf
// make one profile of all samples.
//
// A file is foreign input. What is wrong with it is an *output.BadFile, *jfr.BadRecording or *pprof.Bad; Lacks says
// that a file does not hold what was asked for. IsBad finds them all. Every sample that Open's files give has a frame
// at least.
package recording
