package unwind

import (
	"errors"
	"hash/maphash"
	"slices"

	"goprof/process"
	"goprof/profile"
	"goprof/vmstructs"
)

// maxDumped bounds the virtual threads that are shown. A program may have millions.
const (
	maxDumped = 100_000
	notShown  = "more than 100000 are not shown"
)

// DumpUnmounted makes a dump of the unmounted virtual threads, and returns in words what it lacks. keep sets a thread's
// stack, or its Err.
func (w *Walker) DumpUnmounted(c *vmstructs.Continuations, platform []vmstructs.Thread, to *[]profile.ThreadDump,
	census *profile.VirtualCensus, keep func(*profile.ThreadDump, *profile.Stack) bool) error {
	*to, *census = (*to)[:0], profile.VirtualCensus{Unread: map[string]int{}}
	var stack profile.Stack
	found, err := c.EachVirtual(platform, func(v *vmstructs.VirtualThread) {
		switch {
		case v.Mounted && v.Err == nil:
			return // the dump of its carrier shows it
		case len(*to) >= maxDumped:
			census.Unread[notShown]++
			return
		}
		t := profile.ThreadDump{Name: v.Name, State: v.State, Virtual: &profile.VirtualThread{ID: v.ID, Name: v.Name}}
		switch {
		case v.Err != nil:
			t.Err = WhyUnread(v.Err)
		case len(v.Stack.Chunks) > 0:
			w.WalkContinuation(v.Stack, &stack)
			t.FrameSum = sumOf(v.Stack.Chunks)
			if keep(&t, &stack) && t.Stack.Truncated != profile.Whole {
				census.Unread[t.Stack.Truncated.String()]++
			}
		}
		if t.Err == "" {
			census.Shown++
		} else {
			census.Unread[t.Err]++
		}
		*to = append(*to, t)
	})
	census.Seen, census.Untracked = found.Seen, found.Untracked
	for why, n := range found.Failed {
		census.Unread["a list of threads: "+why] += n
	}
	return err
}

var sumSeed = maphash.MakeSeed()

func sumOf(chunks []process.Chunk) uint64 {
	var sum maphash.Hash
	sum.SetSeed(sumSeed)
	for i := range chunks {
		sum.Write(chunks[i].Stack)
	}
	return sum.Sum64()
}

// CopyStack gives a thread a copy of a stack that takes no more memory than needed, because there may be very many
// threads.
func CopyStack(t *profile.ThreadDump, stack *profile.Stack) bool {
	t.Stack = *stack
	t.Stack.Frames = slices.Clone(stack.Frames)
	return true
}

// WhyUnread explains the error of a virtual thread to a user.
func WhyUnread(err error) string {
	switch {
	case errors.Is(err, vmstructs.ErrMoved):
		return "the collector is moving it"
	case errors.Is(err, vmstructs.ErrChanged):
		return "it ran while it was looked at, again and again"
	}
	return err.Error()
}
