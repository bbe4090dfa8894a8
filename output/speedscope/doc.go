// Package speedscope writes recordings in speedscope's format (file-format-schema.json of its package).
//
// Each thread is a profile of type "sampled", the one with the most time first. Its samples are in the order of
// time. They weigh nanoseconds if the recording has these, bytes of allocations, or else numbers of looks. Each
// method and line is one frame.
//
// Memory is bounded by package timeline, and the file by maxFrames, because each sample has its whole stack in it.
// Equal neighbours of a thread are one sample, which changes nothing of what speedscope shows. If more had to be
// merged or left out, Options.Tell is called, and the name of the file says so.
package speedscope
