//go:build linux

package session

import (
	"time"

	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/unwind"
)

// A recording of CPU time gets looks together (sampler/queue.go). What their walks relied on is proven together, too,
// and so is that the process is still there.

const (
	// mostTogether is how many looks are walked together. Each has a stack of its own meanwhile.
	mostTogether = 32
	// stacksTogether bounds the bytes of their stacks. A proof holds what all of them have met.
	stacksTogether = 1 << 20
)

// bunch are the looks that are walked together.
type bunch struct {
	looks  []*look.Look
	wanted []*look.Look // those of them that count
	walks  []unwind.Together
	stacks [mostTogether]profile.Stack
}

// takeTogether takes a look, and those that are there, too, and gives them back.
func (r *recording) takeTogether(first *look.Look, queue *sampler.Queue) {
	if r.opt.Event != nil || r.opt.Mode.IsWall() {
		r.take(first)
		queue.Done(first)
		return
	}
	b := &r.bunch
	b.fill(first, queue)
	r.takeAtOnce()
	for _, snap := range b.looks {
		queue.Done(snap)
	}
}

// fill finds the looks that are there.
func (b *bunch) fill(first *look.Look, queue *sampler.Queue) {
	b.looks = append(b.looks[:0], first)
	for bytes := len(first.Stack); len(b.looks) < mostTogether && bytes < stacksTogether; {
		select {
		case snap, ok := <-queue.Looks():
			if !ok {
				return
			}
			b.looks = append(b.looks, snap)
			bytes += len(snap.Stack)
		default:
			return
		}
	}
}

// takeAtOnce walks the looks and adds them to the profile.
func (r *recording) takeAtOnce() {
	b := &r.bunch
	b.wanted, b.walks = b.wanted[:0], b.walks[:0]
	for _, snap := range b.looks {
		if !r.follow(snap) {
			r.unwanted += time.Duration(snap.CPU)
			continue
		}
		if r.isTooOld(snap) {
			r.loseStale(snap) // without a walk, so that younger ones have theirs in time
			continue
		}
		b.walks = append(b.walks, unwind.Together{Snap: &snap.Snapshot, Unstopped: snap.Waiting.Unstopped,
			Out: &b.stacks[len(b.wanted)]})
		b.wanted = append(b.wanted, snap)
	}
	r.Walker.WalkAll(b.walks)
	alive := r.alive()
	for i, snap := range b.wanted {
		r.stack, b.stacks[i] = b.stacks[i], r.stack
		r.put(snap, alive, func() int64 { return b.walks[i].Since })
	}
}
