//go:build linux

package session

import (
	"slices"
	"time"

	"goprof/profile"
	"goprof/sampler/events"
	"goprof/sampler/look"
)

// Only the end of a recording shows which memory was not freed (sampler/events/pairing.go). Until then, samples are
// kept by the address of their memory. A sample is dropped when a later one has the same address, or when the address
// is no longer in the kernel's map.

const (
	// maxUnfreed is how many samples are kept before a sweep drops those whose memory was freed. If frames take too much
	// room, a sweep comes earlier.
	maxUnfreed = 2 * events.MostKept
	// maxUnfreedFrames bounds the frames of all kept stacks.
	maxUnfreedFrames = 1 << 20
)

// The frames at the root that divide the stacks into two parts.
const oldPart, youngPart = "[old]", "[young]"

// unfreed keeps samples until the end of a recording.
type unfreed struct {
	kept    *events.Kept
	part    *eventPart
	samples map[uint64]unfreedSample
	stacks  map[profile.Fingerprint]*unfreedStack
	prints  profile.Fingerprinter
	frames  int
	since   int  // samples since the last sweep
	done    bool // sum is known
	sum     profile.Unfreed
}

type unfreedSample struct {
	when  int64
	link  profile.Link
	stack *unfreedStack
}

// unfreedStack is a stack that several samples share.
type unfreedStack struct {
	root   string
	thread profile.Thread
	profile.Stack
	used bool
}

func newUnfreed(plan *EventPlan) *unfreed {
	i := slices.IndexFunc(plan.list, func(e events.Event) bool { return e.Pairing != nil })
	if i < 0 {
		return nil
	}
	return &unfreed{kept: plan.list[i].Pairing.Kept, part: &plan.parts[i], samples: map[uint64]unfreedSample{},
		stacks: map[profile.Fingerprint]*unfreedStack{}, prints: profile.NewFingerprinter()}
}

func (r *recording) keepUnfreed(snap *look.Look, root string, stack *profile.Stack) {
	u := r.unfreed
	addr, when, ok := events.Paired(snap.Event.Data)
	if !ok {
		return
	}
	thread := profile.Thread{}
	if r.timed != nil {
		thread = r.threadOf(snap, stack)
	}
	u.keep(addr, unfreedSample{when: when, link: linkOf(&snap.Context)}, root, thread, stack)
}

// keep keeps a sample with its stack. It ignores a sample that is older than the kept one with the same address: each
// CPU has its own ring, so samples are not ordered.
func (u *unfreed) keep(addr uint64, s unfreedSample, root string, thread profile.Thread, stack *profile.Stack) {
	if u.samples[addr].when > s.when {
		return
	}
	u.since++
	if len(u.samples) >= maxUnfreed || u.frames > maxUnfreedFrames*7/8 && u.since >= maxUnfreed/16 {
		u.sweep()
	}
	if s.stack = u.stackOf(root, thread, stack); s.stack != nil {
		u.samples[addr] = s
	} else {
		delete(u.samples, addr) // the kept sample's memory was freed
	}
}

// stackOf keeps a stack. It returns nil if there is no room.
func (u *unfreed) stackOf(root string, thread profile.Thread, stack *profile.Stack) *unfreedStack {
	print := u.prints.Of(stack)
	for i := range len(root) { // FNV-1a
		print[0] = (print[0] ^ uint64(root[i])) * 0x100000001b3
	}
	print[1] += uint64(thread.TID) * 0x9e3779b97f4a7c15
	if s := u.stacks[print]; s != nil && s.root == root && s.thread == thread {
		return s
	}
	if u.frames+len(stack.Frames) > maxUnfreedFrames {
		return nil
	}
	s := &unfreedStack{root: root, thread: thread, Stack: *stack}
	s.Frames = slices.Clone(stack.Frames)
	u.stacks[print], u.frames = s, u.frames+len(s.Frames)
	return s
}

// sweep drops samples whose memory was freed, and stacks without a sample.
func (u *unfreed) sweep() {
	u.since = 0
	for addr, s := range u.samples {
		if piece, ok := u.kept.At(addr); ok && piece.When == s.when {
			s.stack.used = true
			continue
		}
		delete(u.samples, addr)
	}
	for print, s := range u.stacks {
		if !s.used {
			u.frames -= len(s.Frames)
			delete(u.stacks, print)
		}
		s.used = false
	}
}

// endUnfreed adds the memory that was not freed to the profile.
func (r *recording) endUnfreed() {
	u := r.unfreed
	if u == nil {
		return
	}
	defer u.kept.Close()
	if u.kept.Over == 0 {
		return // the sampler hangs: the map still changes
	}
	u.done = true
	half := u.kept.Began + (u.kept.Over-u.kept.Began)/2
	unseen := &unfreedStack{Stack: profile.Stack{Frames: []profile.Frame{unseenFrame()}}}
	u.kept.Each(func(addr uint64, piece events.Piece) {
		s := u.samples[addr]
		seen := s.stack != nil && s.when == piece.When
		if !seen && r.opt.Wants != nil {
			return // its thread may not be a chosen one
		}
		name, part := youngPart, &u.sum.Young
		if piece.When < half {
			name, part = oldPart, &u.sum.Old
		}
		bytes := int64(min(piece.Stood, 1<<46)) // the target chooses the size
		times := max(bytes/int64(min(max(piece.Own, 1), 1<<46)), 1)
		part.Add(times, bytes)
		if !seen {
			s = unfreedSample{stack: unseen}
			u.sum.NoStack.Add(times, bytes)
		}
		r.addUnfreed(&s, name, piece.When, bytes)
	})
	if u.kept.Stopped > 0 {
		u.sum.Met = time.Duration(u.kept.Stopped - u.kept.Began)
	}
	if u.kept.Closed > 0 {
		u.sum.Followed = time.Duration(u.kept.Closed - u.kept.Began)
	}
	c := &u.kept.PairCounts
	u.sum.Freed, u.sum.Frees, u.sum.Full = int64(c.Freed), int64(c.Frees), int64(c.Full)
	u.sum.Unended, u.sum.Parts = int64(c.Unended), int64(c.Parts)
}

// addUnfreed adds a sample below the frame of its part, old or young.
func (r *recording) addUnfreed(of *unfreedSample, part string, when, bytes int64) {
	s := of.stack
	root := part
	if s.root != "" {
		root += " " + s.root
	}
	amount := bytes
	if r.opt.Event.Unit == profile.Samples {
		amount = 0
	}
	r.profile.AddAt(root, &s.Stack, 1, time.Duration(amount)) // bytes are the profile's other weight
	t := r.timed
	if t == nil {
		return
	}
	stack := s.Stack
	stack.Frames = append(slices.Clone(stack.Frames), r.events.frame(part, profile.Gap))
	t.sample = profile.Sample{At: t.clock.at(when), Thread: s.thread, Stack: &stack, Count: 1, Bytes: bytes,
		Event: r.unfreed.part.of, NoState: true, Link: of.link}
	t.sink.Sample(&t.sample)
}
