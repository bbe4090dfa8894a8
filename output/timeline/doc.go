// Package timeline takes all samples of a recording, thread by thread and in the order of time, for formats that are
// written in that way (speedscope, Firefox Profiler).
//
// You give a recording.Source and the bounds. You get tracks of samples, and the tree of their stacks.
//
// Memory is bounded, whatever the recording's size. If there are more samples than may be kept, equal neighbours of
// a thread become one. If that is not enough, equal stacks of a thread within a slot of time become one, and the
// slot grows until the samples fit. Their looks and times are added up. Samples that still have no room are counted.
// Timeline says which of these happened, so that a file can tell it.
package timeline
