//go:build linux

package session

import (
	"fmt"
	"time"

	"goprof/process"
	"goprof/profile"
	"goprof/sampler/look"
	"goprof/sampler/ptrace"
)

// In a profile, a virtual thread that a carrier runs is a thread of its own: the carrier's frames are not in its
// stacks, and its own name is above them.

// afterLook returns what must be done with each snapshot as soon as its thread runs again, and the trail along which
// frames in the heap are copied during the pause. The trail is nil if there is none.
func (s *Session) afterLook() (after func(snap *look.Look, released int64), trail *process.Trail) {
	c, code := s.VM.NewContinuations().ReadFrom(s.memory), s.VM.NewSightings().ReadFrom(s.memory)
	if c == nil {
		return func(snap *look.Look, _ int64) { code.Note(&snap.Snapshot, snap.When) }, nil
	}
	trail = new(process.Trail)
	return func(snap *look.Look, released int64) {
		c.Read(&snap.Snapshot, snap.When)
		if k := &snap.Continuation; !k.Together && now()-released > int64(s.Soon) {
			k.Settled = false
		}
		c.Trail(trail)
		code.Note(&snap.Snapshot, snap.When)
	}, trail
}

// soon is the time after a thread's release within which goprof may read frames in the heap. Later, the thread may have
// run through many of them and returned to the same place unnoticed. Most reads take 30 us. They take longer if the
// sampler loses its CPU just then, or on an emulated machine, where a test gives its Session more time.
const soon = 150 * time.Microsecond

// virtualLooks is how often a dump looks at a carrier whose virtual thread was being mounted or unmounted, or has moved
// on during the look.
const virtualLooks = 4

// inTheHeap picks the threads whose frames in the heap could not be read.
func (d *dumping) inTheHeap(looks []ptrace.Subject) (again []ptrace.Subject) {
	for _, l := range looks {
		if s := &d.threads[d.byTID[l.TID]].Stack; s.Mounted && s.Truncated == profile.Continuation {
			again = append(again, l)
		}
	}
	return again
}

// subject returns the stack that a snapshot shows, and the label of its thread. The label is empty if threads are not
// wanted. If a virtual thread was mounted, the stack is the virtual thread's.
func (r *recording) subject(snap *look.Look) (*profile.Stack, string) {
	virtual, _, ok := r.stack.Split()
	r.virtual = virtual
	switch {
	case ok && r.opt.Threads:
		return &r.virtual, r.pool(r.labels.of(virtual.Virtual))
	case ok:
		return &r.virtual, ""
	case r.opt.Threads:
		return &r.stack, r.threadLabel(snap.TID, r.dir.labelAt(snap.TID, snap.When))
	}
	return &r.stack, ""
}

// virtualLabels makes the frames above virtual threads' stacks, each frame once.
type virtualLabels map[profile.VirtualThread]string

// maxVirtualLabels bounds the kept labels: a program may start millions of virtual threads.
const maxVirtualLabels = 1 << 16

func (l virtualLabels) of(v profile.VirtualThread) string {
	return profile.Cached(l, maxVirtualLabels, v, func() string { return virtualLabel(v) })
}

// virtualLabel is "[name virtual #id]", without the parts that are not known.
func virtualLabel(v profile.VirtualThread) string {
	switch {
	case v.ID == 0:
		return "[virtual #?]"
	case v.Name == "":
		return fmt.Sprintf("[virtual #%d]", v.ID)
	}
	return fmt.Sprintf("[%s virtual #%d]", v.Name, v.ID)
}
