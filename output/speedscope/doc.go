// Package speedscope writes recordings in speedscope's format (file-format-schema.json of its package).
//
// Each thread is a profile of type "sampled", the one with the most time first. Its samples are ordered by time. Their
// weights are nanoseconds if the recording has them, or bytes of allocations, otherwise numbers of looks. Each method
// and line is one frame.
//
// Package timeline bounds memory. maxFrames bounds the file, because each sample in it has its whole stack. Consecutive
// equal samples of a thread become one, which changes nothing in speedscope. If more had to be merged or left out,
// Options.Tell is called, and the profile's name in the file says so.
package speedscope
