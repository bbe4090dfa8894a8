// Package wall is the engine that looks at every thread in each interval, whatever the thread does. A running thread is
// stopped, and a blocked thread is looked at without a stop. A thread that has not moved since its last look is only
// counted. With Options.Gather the engine looks only at threads that all others wait for.
package wall
