// Package speedscope writes recordings in speedscope's format (file-format-schema.json of its package).
//
// Each thread is a profile of type "sampled", the one with the most time first. Its samples are in the order of time and
// have weights: nanoseconds where the recording tells them, bytes of allocations, else numbers of looks. Frames are one for
// each method and line.
//
// Memory is bounded by package timeline, and the file by maxRefs, because each sample has its whole stack in it. Equal
// neighbours of a thread are one sample, which changes nothing of what speedscope shows. What else had to be merged or
// left out is told by Options.Tell and stands in the name of the file.
package speedscope
