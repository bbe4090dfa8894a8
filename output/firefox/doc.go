// Package firefox writes recordings for the Firefox Profiler: its processed profile of version 66, gzip. A viewer
// converts files of older versions, and refuses those of newer ones.
//
// Each thread is a track, the one with the most time first. Facts about the whole process (recording.Marked) have a
// track of their own, without samples. All times count from meta.startTime.
//
// The activity graph shows CPU use: threadCPUDelta is the CPU time of a sample. If a recording of CPU samples does not
// have CPU times, each look stands for one interval. In wall-clock modes, looks at waiting threads stand for no CPU
// time.
//
// Memory is bounded by package timeline, and markers by maxMarkers. The file and Options.Tell say what was merged or
// left out.
package firefox
