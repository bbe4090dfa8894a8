//go:build linux

package session

import (
	"slices"

	"goprof/profile"
	"goprof/sampler/look"
	"goprof/sampler/offcpu"
)

// A chain: the thread that ended a wait was itself waiting before, until another thread ended that wait. Each hop of a
// chain is a wait that is over. The next hop is the waker's last wait that overlapped long enough with the first wait
// of the chain (offcpu.HopShare). If there is none, the waker ran nearly all the time, and is the last hop.

const (
	// mostHops and mostHopFrames bound the waits that are kept as hops for waits that end later.
	mostHops, mostHopFrames = 1 << 12, 1 << 17
)

// hop is a wait that is over.
type hop struct {
	above      []profile.Frame // the waker's frames, leaf first
	began, end int64
	before     *hop // the waker's own last wait; nil: not known
}

// chain keeps the most recent waits that are over.
type chain struct {
	most   int // greatest length of a chain; 0 and 1: no waits are kept
	of     map[*look.Tally]*hop
	order  []*look.Tally // the oldest first
	frames int
	above  []profile.Frame // reused
}

// add keeps a wait, and returns the frames above it, leaf first: those of its waker, and of the earlier hops.
func (c *chain) add(t *look.Tally, h *hop) []profile.Frame {
	if c.most < 2 {
		return h.above
	}
	hops := []*hop{h}
	for at := h.before; at != nil && len(hops) < c.most && at.shares(h); at = at.before {
		hops = append(hops, at)
	}
	c.above = c.above[:0]
	for _, at := range slices.Backward(hops) {
		c.above = append(c.above, at.above...)
	}
	kept := *h
	kept.above = slices.Clone(h.above)
	c.of[t], c.order, c.frames = &kept, append(c.order, t), c.frames+len(kept.above)
	for len(c.order) > mostHops || c.frames > mostHopFrames {
		old := c.of[c.order[0]]
		c.frames -= len(old.above)
		old.above, old.before = nil, nil // later hops may refer to it
		delete(c.of, c.order[0])
		c.order = c.order[1:]
	}
	return c.above
}

// shares reports whether a hop overlaps long enough with the first wait.
func (h *hop) shares(first *hop) bool {
	both := min(h.end, first.end) - max(h.began, first.began)
	return h.above != nil && both*offcpu.HopShare >= first.end-first.began
}
