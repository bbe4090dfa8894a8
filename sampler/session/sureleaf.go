//go:build linux

package session

import (
	"slices"

	"goprof/profile"
)

// sureLeaf puts the innermost method that is certain in place of a leaf that is a guess: the method that was compiled,
// into which the others were inlined (docs/decisions/0007). Frames of HotSpot's own code stay above it.
func sureLeaf(s *profile.Stack) {
	if len(s.Frames) == 0 || s.Frames[0].Sure != profile.Guessed {
		return
	}
	first := 0
	for first < len(s.Frames)-1 && !s.Frames[first].Kind.Java() {
		first++
	}
	last := first
	for last < len(s.Frames)-1 && s.Frames[last].Kind == profile.Inlined {
		last++
	}
	s.Frames = slices.Delete(s.Frames, first, last)
	s.Frames[0].Sure, s.Frames[first].Sure = profile.Certain, profile.Certain
	if s.Carrier > 0 {
		s.Carrier -= last - first
	}
}
