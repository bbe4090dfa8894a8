//go:build linux

package session

import "goprof/profile"

// sureLeaf puts the innermost method that is certain in place of a leaf that is a guess: that of the compiled code
// itself, into which the others were inlined (docs/decisions/0007).
func sureLeaf(s *profile.Stack) {
	if len(s.Frames) == 0 || s.Frames[0].Sure != profile.Guessed {
		return
	}
	n := 0
	for n < len(s.Frames)-1 && s.Frames[n].Kind == profile.Inlined {
		n++
	}
	s.Frames = s.Frames[:copy(s.Frames, s.Frames[n:])]
	s.Frames[0].Sure = profile.Certain
	if s.Carrier > 0 {
		s.Carrier -= n
	}
}
