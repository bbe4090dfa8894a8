package recording

import "goprof/profile"

// Guesses counts the guessed leaves of a recording by their compiled methods. Only JFR files of goprof's own say which
// leaves are guesses.
func Guesses(src Source) (profile.Guesses, error) {
	var g profile.Guesses
	i := src.Info()
	if i.Format != JFR || i.Summary != nil && i.Summary.LeafGuessed == 0 {
		return g, nil
	}
	var known profile.ByStack[*profile.Func] // of one reading: nil if the leaf is no guess
	err := EachLazily(src, func(s *profile.Sample) error {
		in, met := known.Get(s.StackNumber, 0)
		if !met {
			if err := s.Read(); err != nil {
				return err
			}
			if s.Stack != nil {
				in = s.Stack.Guessed()
			}
			known.Put(s.StackNumber, 0, in)
		}
		g.Add(in, s.Looks())
		return nil
	})
	return g, err
}
