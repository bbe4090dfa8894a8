// Package timeline takes all samples of a recording, thread by thread and in the order of time, for formats that are
// written so (speedscope, Firefox Profiler).
//
// You give a recording.Source and what may be kept; you get tracks of samples and the tree of their stacks.
//
// Memory is bounded, whatever the recording's size. Where there are more samples than may be kept, equal neighbours of
// a thread become one, and if that does not do, equal stacks of a thread that lie within a slot of time, which is
// doubled until the samples fit. Their looks and times are added up. What still has no room is counted. Timeline says
// which of these happened, so that a file can tell it.
package timeline
