//go:build linux

package session

import (
	"errors"
	"slices"

	"goprof/process"
	"goprof/profile"
	"goprof/vmstructs"
)

// ErrNoVirtual: the JVM has no virtual threads, or does not say where they are.
var ErrNoVirtual = errors.New("this JVM has no virtual threads that could be listed (they came with JDK 21)")

// HasVirtual reports whether the JVM has virtual threads that DumpVirtual could list.
func (s *Session) HasVirtual() bool { return s.VM.HasVirtual() }

// maxDumped bounds the virtual threads that are shown: a program may have millions.
const (
	maxDumped = 100_000
	notShown  = "more than 100000 are not shown"
)

// DumpVirtual looks at every virtual thread that no carrier runs. It stops no thread: the frames of such a virtual
// thread lie in the heap until a carrier runs it. Dump has the virtual threads that a carrier runs.
//
// After virtualLimit it reads no more, and returns what it has read.
func (s *Session) DumpVirtual(opt DumpOptions) (all []profile.ThreadDump, census profile.VirtualCensus, err error) {
	census = profile.VirtualCensus{Unread: map[string]int{}}
	if !s.guarded(func() { err = s.dumpVirtual(opt, &all, &census) }) {
		err = process.ErrSilent
	}
	profile.OrderVirtual(all)
	return all, census, err
}

func (s *Session) dumpVirtual(opt DumpOptions, all *[]profile.ThreadDump, census *profile.VirtualCensus) error {
	if opt.Depth > 0 {
		s.Walker.MaxDepth = opt.Depth
	}
	c := s.VM.NewContinuations().ReadFrom(s.timed(virtualLimit))
	if c == nil {
		return ErrNoVirtual
	}
	s.awaitCollection()
	platform, err := s.VM.Threads()
	if err != nil {
		return err
	}
	var stack profile.Stack
	found, err := c.EachVirtual(platform, func(v *vmstructs.VirtualThread) {
		if v.Mounted && v.Err == nil {
			return // its carrier shows it
		}
		if len(*all) >= maxDumped {
			census.Unread[notShown]++
			return
		}
		t := profile.ThreadDump{Name: v.Name, State: v.State, Virtual: &profile.VirtualThread{ID: v.ID, Name: v.Name}}
		switch {
		case v.Err != nil:
			t.Err = whyUnread(v.Err)
			census.Unread[t.Err]++
		case len(v.Stack.Chunks) > 0:
			s.Walker.WalkContinuation(v.Stack, &stack)
			t.Stack = stack
			t.Stack.Frames = slices.Clone(stack.Frames) // a copy without spare room: there may be very many threads
			if t.Stack.Truncated != profile.Whole {
				census.Unread[t.Stack.Truncated.String()]++
			}
		}
		if t.Err == "" {
			census.Shown++
		}
		*all = append(*all, t)
	})
	census.Seen, census.Untracked = found.Seen, found.Untracked
	for why, n := range found.Failed {
		census.Unread["a list of threads: "+why] += n
	}
	return errors.Join(err, s.Process.Alive())
}

// whyUnread puts an error into words for a user.
func whyUnread(err error) string {
	switch {
	case errors.Is(err, vmstructs.ErrMoved):
		return "the collector is moving it"
	case errors.Is(err, vmstructs.ErrChanged):
		return "it ran while it was looked at, again and again"
	}
	return err.Error()
}
