//go:build linux

package session

import "time"

// habits are what a recording does beside taking samples, and how often.
type habits struct {
	queue  int           // how many snapshots may wait; 0: the engine and the depth of stacks say it
	list   time.Duration // between two readings of the list of threads
	draw   time.Duration // between two draws of virtual threads that no carrier runs
	remap  time.Duration // between two looks at what the process has mapped, and whether it is still there
	quiet  int           // while the program does nothing, only one in so many of these looks is made
	spread bool          // recordings look at different seconds: hundreds of them would look all at once

	ahead   bool // goprof's threads have a better priority
	surveys bool // all generated code is noted (survey.go)
	buffers bool // the contents of buffers are read (alloc_shares.go)
	counts  bool // what threads allocate is read (allocated.go)
	forgets bool // caches are emptied where goprof uses much memory (memory.go)
	stacks  bool // the profile has stacks, and not the Sink alone
}

// habitsOf returns the habits of a recording. A lean recording is one of many in this process, and goes on for good.
func habitsOf(lean bool) habits {
	if lean {
		return habits{queue: 96, list: 5 * time.Second, remap: 5 * time.Second, draw: 10 * drawEvery, quiet: 3, spread: true}
	}
	return habits{list: refreshEvery, remap: remapEvery, draw: drawEvery, quiet: 1,
		ahead: true, surveys: true, buffers: true, counts: true, forgets: true, stacks: true}
}
