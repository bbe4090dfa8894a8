// Package timeline orders all samples of a recording by thread and time, for formats that are written in that order
// (speedscope, Firefox Profiler).
//
// It takes a recording.Source and limits. It returns tracks of samples, and the tree of their stacks.
//
// Memory is bounded, whatever the recording's size. If there are too many samples, consecutive equal samples of a
// thread become one. If that is not enough, equal stacks of a thread within a slot of time become one, and the slot
// grows until the samples fit. Their looks and times are added up. Samples that still have no room are left out and
// counted. The result says which of these happened, so that the file can say it, too.
package timeline
