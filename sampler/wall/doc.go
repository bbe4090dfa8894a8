// Package wall is the engine that looks at every thread in each interval, whatever the thread does. A thread that has
// not moved since its last look is only counted, a blocked thread is looked at without a stop, and a thread that runs
// is stopped. With Options.Gather it looks only at threads for which all others wait.
package wall
