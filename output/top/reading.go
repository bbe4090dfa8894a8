// Package top makes the screen of "goprof top": one JVM, drawn again every second.
//
// The caller passes a Reading each second, and the keys that the user presses. The package returns the lines of a
// screen of any size, and the user's requests (an Action). It uses no clock, no terminal and no process. Names in a
// Reading come from the target and may contain any text. They are cleaned when they are drawn.
package top

import (
	"time"
)

// Reading is the state of a JVM in the last seconds.
type Reading struct {
	PID       int
	Main      string // main class or jar
	JVM       string // release
	Collector string
	Uptime    time.Duration
	CPUs      int           // of the machine
	Span      time.Duration // the time that rates and CPU are for

	CPU        float64 // used by the process, in CPUs: 1 is one CPU all the time
	Alloc      float64 // of all threads, in bytes a second
	AllocKnown bool
	Threads    []Thread
	Pools      []Pool // as far as known

	// Methods are the methods of the samples in the Window. Samples is the number of these samples.
	Methods []Method
	Window  time.Duration
	Samples int64

	GC     GC
	Pauses Pauses
	Own    Cost
}

type Thread struct {
	TID   int
	Name  string
	State string
	CPU   float64 // 1 is one CPU all the time
	// Frame is the topmost Java method at the last look, by naming.TopJava. It is empty if there was none, or if it is not
	// known.
	Frame string
	// Alloc is in bytes a second. It is not known for threads that are not Java's, and for JVMs that do not count it.
	Alloc      float64
	AllocKnown bool
}

// Method is a method or function, with its shares of the samples in the window, 0 to 1.
type Method struct {
	Name  string
	Self  float64 // share with it as leaf
	Total float64 // share with it on the stack
}

// GC is what the collector did in Span.
type GC struct {
	Known       bool    // its threads can be distinguished from others
	CPU         float64 // of its threads, in CPUs
	Counted     bool    // Collections is known
	Collections int64
}

// Pauses are all pauses that goprof itself has caused since its start.
type Pauses struct {
	Count int64
	P99   time.Duration
	Max   time.Duration
	Held  float64 // the share of the last span for which goprof held some thread
}

// Cost is what goprof itself used in Span.
type Cost struct {
	CPU    float64
	Memory int64 // resident, in bytes; 0: not known
}
