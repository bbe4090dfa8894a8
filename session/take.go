//go:build linux

package session

import (
	"time"

	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/unwind"
)

// Each look goes through the same steps in every kind of recording:
//
//	wanted -> walk -> prove -> shape -> account -> tell
//
// All looks that wait in the queue are walked together (sampler/queue.go). Then one read proves the data that all of
// these walks used, and one check shows that the process still exists.

// manner is what differs between recordings of CPU time (cpu.go), of events (event.go) and of wall-clock time
// (wall.go).
type manner interface {
	// together is how many looks may be walked together.
	together() int
	// wanted reports whether a look must be walked.
	wanted(snap *look.Look) bool
	// walked is called right after the walk, to read more of the process.
	walked(snap *look.Look, stack *profile.Stack)
	// seen returns when the thread was last known to be where the look shows it.
	seen(snap *look.Look) int64
	// lose counts a look that shows nothing.
	lose(snap *look.Look, why profile.Reason)
	// shape completes a proven stack for the profile. It returns false if the look does not count.
	shape(snap *look.Look, stack *profile.Stack) bool
	// count adds a look to the profile, under the root of its thread, and hands it to the Sink.
	count(snap *look.Look, stack *profile.Stack, root string)
	// settleAll updates the profile with looks that still continue.
	settleAll()
	// end is called when no more looks come.
	end()
	// move finds new places for kept looks after the stacks of the profile were taken.
	move(from *profile.Profile)
	// account adds the facts to the account that only this kind of recording has.
	account(sum *profile.Summary, stats *sampler.Stats)
}

// In most kinds of recordings these steps do nothing.
func (r *recording) walked(*look.Look, *profile.Stack) {}
func (r *recording) settleAll()                        {}
func (r *recording) end()                              {}
func (r *recording) move(*profile.Profile)             {}

const (
	// mostTogether bounds the looks that are walked together. Each has a stack of its own until all are walked.
	mostTogether = 32
	// stacksTogether bounds the bytes of their stacks. One proof holds what all their walks have used.
	stacksTogether = 1 << 20
)

// bunch holds the looks that are walked together.
type bunch struct {
	looks  []*look.Look
	wanted []wantedLook // the looks that count
	walks  []unwind.Together
	stacks [mostTogether]profile.Stack // by index in wanted
}

// wantedLook is a look that counts. walk is the index of its walk; -1: there is nothing to walk.
type wantedLook struct {
	*look.Look
	walk int
}

// takeTogether takes a look and those that wait after it in the queue, and then returns them to the queue.
func (r *recording) takeTogether(first *look.Look, queue *sampler.Queue) {
	b := &r.bunch
	b.fill(first, queue, r.manner.together())
	r.take()
	for _, snap := range b.looks {
		queue.Done(snap)
	}
}

// fill makes a bunch of first and the looks that are already in the queue. It takes no more than
func (b *bunch) fill(first *look.Look, queue *sampler.Queue, most int) {
	b.looks = append(b.looks[:0], first)
	for bytes := len(first.Stack); len(b.looks) < most && bytes < stacksTogether; {
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

// take walks the looks of the bunch and adds them to the profile.
func (r *recording) take() {
	b := &r.bunch
	b.wanted, b.walks = b.wanted[:0], b.walks[:0]
	for _, snap := range b.looks {
		if !r.manner.wanted(snap) {
			continue
		}
		if r.isTooOld(snap) {
			r.manner.lose(snap, profile.Stale) // without a walk, so that younger looks are walked in time
			continue
		}
		stack := &b.stacks[len(b.wanted)]
		if snap.Waiting.Unstopped && snap.SP == 0 { // only what the thread did is known
			*stack = profile.Stack{Frames: stack.Frames[:0], Truncated: profile.NotStopped}
			b.wanted = append(b.wanted, wantedLook{snap, -1})
			continue
		}
		b.wanted = append(b.wanted, wantedLook{snap, len(b.walks)})
		b.walks = append(b.walks, unwind.Together{Snap: &snap.Snapshot, Unstopped: snap.Waiting.Unstopped, Out: stack})
	}
	r.Walker.WalkAll(b.walks)
	for i, snap := range b.wanted {
		r.manner.walked(snap.Look, &b.stacks[i])
	}
	alive := r.alive()
	for i, snap := range b.wanted {
		since := int64(0)
		if snap.walk >= 0 {
			since = b.walks[snap.walk].Since
		}
		r.stack, b.stacks[i] = b.stacks[i], r.stack
		r.put(snap.Look, alive, since)
	}
}

// put adds a look to the profile, or counts it as lost. The look's walked stack is in r.stack. alive says whether the
// process still existed after the walk. since is the result of Walker.Since (see proven).
func (r *recording) put(snap *look.Look, alive bool, since int64) {
	m := r.manner
	r.wantSoon(snap.TID, &r.stack)
	switch {
	case !alive:
		m.lose(snap, profile.ProcessGone)
		return
	case !r.proven(snap, m.seen(snap), since):
		m.lose(snap, profile.Stale)
		return
	case !m.shape(snap, &r.stack):
		return
	}
	stack, root := r.subject(snap)
	if r.opt.SureLeaf {
		stack.Settle()
	}
	if r.opt.HideInternal {
		r.folder.Stack(stack)
	}
	m.count(snap, stack, root)
}

func (r *recording) add(root string, stack *profile.Stack, n int64, d time.Duration) {
	if r.habits.stacks {
		r.profile.AddTimed(root, stack, n, d)
	} else {
		r.profile.Count(stack, n, d)
	}
}

// walk makes a stack from the known registers.
func (s *Session) walk(snap *look.Look, stack *profile.Stack) {
	if snap.Waiting.Unstopped {
		s.Walker.WalkUnstopped(&snap.Snapshot, stack)
	} else {
		s.Walker.Walk(&snap.Snapshot, stack)
	}
}
