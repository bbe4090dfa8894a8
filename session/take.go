//go:build linux

package session

import (
	"time"

	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
	"goprof/unwind"
)

// Each look goes through the same steps, whatever is recorded:
//
//	wanted -> walk -> prove -> shape -> account -> tell
//
// All looks that wait in the queue are walked together (sampler/queue.go). One read then proves the data that all of
// these walks used, and one check shows that the process still exists.

// manner is what differs between recordings of CPU time (cpu.go), of events (event.go) and of wall-clock time
// (wall.go).
type manner interface {
	// together is how many looks may be walked together.
	together() int
	// wanted reports whether a look is to be walked.
	wanted(snap *look.Look) bool
	// walked is called right after the walk, for what else is to be read of the process.
	walked(snap *look.Look, stack *profile.Stack)
	// seen is when the thread was last known to stand where the look shows it.
	seen(snap *look.Look) int64
	// lose counts a look that shows nothing.
	lose(snap *look.Look, why profile.Reason)
	// shape completes a proven stack for the profile. It returns false if the look does not count.
	shape(snap *look.Look, stack *profile.Stack) bool
	// count adds a look to the profile, under the root of its thread, and tells the Sink.
	count(snap *look.Look, stack *profile.Stack, root string)
	// settleAll brings the profile up to date with looks that go on.
	settleAll()
	// end is called when no more looks come.
	end()
	// move finds the new places of kept looks after the stacks of the profile were taken.
	move(from *profile.Profile)
	// account adds to the account what only such a recording says.
	account(sum *profile.Summary, stats *sampler.Stats)
}

// Most kinds of recordings do nothing at these moments.
func (r *recording) walked(*look.Look, *profile.Stack) {}
func (r *recording) settleAll()                        {}
func (r *recording) end()                              {}
func (r *recording) move(*profile.Profile)             {}

const (
	// mostTogether is how many looks are walked together. Each has a stack of its own meanwhile.
	mostTogether = 32
	// stacksTogether bounds the bytes of their stacks. A proof holds what all of them have met.
	stacksTogether = 1 << 20
)

// bunch are the looks that are walked together.
type bunch struct {
	looks  []*look.Look
	wanted []wantedLook // those of them that count
	walks  []unwind.Together
	stacks [mostTogether]profile.Stack // by index of wanted
}

// wantedLook is a look that counts. walk is its walk's index; -1: there is nothing to walk.
type wantedLook struct {
	*look.Look
	walk int
}

// takeTogether takes a look, and the looks that wait behind it in the queue, and gives them back.
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
			r.manner.lose(snap, profile.Stale) // without a walk, so that younger ones have theirs in time
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

// walk makes a stack by what is known of the registers.
func (s *Session) walk(snap *look.Look, stack *profile.Stack) {
	if snap.Waiting.Unstopped {
		s.Walker.WalkUnstopped(&snap.Snapshot, stack)
	} else {
		s.Walker.Walk(&snap.Snapshot, stack)
	}
}
