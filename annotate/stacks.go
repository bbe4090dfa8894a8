package annotate

import (
	"slices"

	"goprof/profile"
)

// maxKeptFrames limits the frames that Stacks keeps. A frame takes 56 bytes.
const maxKeptFrames = 1 << 20

// Stacks keeps the stacks of a live recording until all guesses are known. Only then is it decided which guesses count
// (profile.Guesses).
type Stacks struct {
	prints  profile.Fingerprinter
	kept    map[profile.Fingerprint]*keptStack
	frames  int
	guesses profile.Guesses
	rest    *Collector // gets the stacks for which there is no room, unchanged
}

type keptStack struct {
	profile.Stack
	n int64
}

// NewStacks makes an empty Stacks. Collect later passes the stacks to the Collector.
func NewStacks(to *Collector) *Stacks {
	return &Stacks{prints: profile.NewFingerprinter(), kept: map[profile.Fingerprint]*keptStack{}, rest: to}
}

// Add adds a stack n times.
func (s *Stacks) Add(stack *profile.Stack, n int64) {
	print := s.prints.Of(stack)
	at := s.kept[print]
	if at == nil {
		if s.frames += len(stack.Frames); s.frames > maxKeptFrames {
			s.rest.Add(stack, n)
			return
		}
		at = &keptStack{Stack: *stack}
		at.Frames = slices.Clone(stack.Frames)
		s.kept[print] = at
	}
	at.n += n
	s.guesses.Add(stack.Guessed(), n)
}

// Collect passes all stacks to the Collector. If a compiled method has many guesses, its samples count for the compiled
// method, as in all reports.
func (s *Stacks) Collect() {
	for _, k := range s.kept {
		if s.guesses.Much(k.Guessed()) {
			s.rest.Unnamed += k.n
			k.Settle()
		}
		s.rest.Add(&k.Stack, k.n)
	}
}
