//go:build linux

package session

import "time"

// habits are a recording's periodic tasks besides sampling, and their intervals.
type habits struct {
	queue  int           // how many snapshots may wait; 0: depends on the engine and the depth of stacks
	list   time.Duration // between two readings of the list of threads
	draw   time.Duration // between two draws of virtual threads without a carrier
	remap  time.Duration // between two checks of the process's mappings, and whether it still lives
	quiet  int           // while the program is idle, only one in so many of these checks is made
	spread bool          // recordings check at different seconds: otherwise hundreds of them would check at once

	ahead   bool // goprof's threads have a better priority
	surveys bool // all generated code is noted (survey.go)
	buffers bool // the contents of buffers are read (alloc_shares.go)
	counts  bool // how much threads allocate is read (allocated.go)
	forgets bool // caches are emptied if goprof uses much memory (memory.go)
	stacks  bool // the profile has stacks; otherwise only the Sink gets them
}

// habitsOf returns the habits of a recording. A lean recording is one of many in this process, and runs without end.
func habitsOf(lean bool) habits {
	if lean {
		return habits{queue: 96, list: 5 * time.Second, remap: 5 * time.Second, draw: 10 * drawEvery, quiet: 3, spread: true}
	}
	return habits{list: refreshEvery, remap: remapEvery, draw: drawEvery, quiet: 1,
		ahead: true, surveys: true, buffers: true, counts: true, forgets: true, stacks: true}
}
