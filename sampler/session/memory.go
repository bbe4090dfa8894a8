//go:build linux

package session

// MemoryGoal is what a recording's garbage collector should work harder not to exceed. What a recording keeps is
// bounded by its own limits: the profile by profile.DefaultMaxNodes (23 MB, and 20 for names), snapshots by
// sampler.Queue, and the caches of unwind and vmstructs by theirs.
const MemoryGoal = 70 << 20
