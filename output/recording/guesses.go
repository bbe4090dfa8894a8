package recording

import "goprof/profile"

// Guesses counts the guessed leaves of a recording by their compiled methods. Only JFR files of goprof's own say which
// leaves are guesses.
func Guesses(src Source) (profile.Guesses, error) {
	var g profile.Guesses
	i := src.Info()
	if i.Format != JFR {
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

// Settled returns a recording with stacks as they should be shown: where a compiled method has many guesses, they count
// for that method. It reads the recording once, for the guesses. It is the recording itself if none is to be moved.
func Settled(src Source) (Source, error) {
	if s := src.Info().Summary; s != nil && float64(s.LeafGuessed) < profile.GuessedMuch*float64(s.Samples) {
		return src, nil // all of them are too few
	}
	g, err := Guesses(src)
	if err != nil || !g.Any() {
		return src, err
	}
	return &shown{Source: src, guesses: g}, nil
}

type shown struct {
	Source
	guesses profile.Guesses
	stack   profile.Stack
	of      *profile.Sample // whose stack is not read yet
	unread  func() error    // reads it
}

func (s *shown) Each(visit func(*profile.Sample) error) error {
	return s.EachLazily(func(of *profile.Sample) error {
		if err := of.Read(); err != nil {
			return err
		}
		return visit(of)
	})
}

func (s *shown) EachLazily(visit func(*profile.Sample) error) error {
	read := s.read
	return EachLazily(s.Source, func(of *profile.Sample) error {
		if s.settle(of); of.Unread != nil {
			s.of, s.unread, of.Unread = of, of.Unread, read
		}
		return visit(of)
	})
}

func (s *shown) EachBare(visit func(*profile.Sample) error) error { return EachBare(s.Source, visit) }

func (s *shown) read() error {
	if err := s.unread(); err != nil {
		return err
	}
	s.settle(s.of)
	return nil
}

// settle changes a copy of the stack: samples share theirs.
func (s *shown) settle(of *profile.Sample) {
	if of.Stack == nil || !s.guesses.Much(of.Stack.Guessed()) {
		return
	}
	frames := append(s.stack.Frames[:0], of.Stack.Frames...)
	s.stack = *of.Stack
	s.stack.Frames = frames
	s.stack.Settle()
	of.Stack = &s.stack
}

// Marks are the recording's, if it has any.
func (s *shown) Marks(visit func(Mark) error) error {
	if m, ok := s.Source.(Marked); ok {
		return m.Marks(visit)
	}
	return nil
}

// Lives are the recording's, if it has any.
func (s *shown) Lives(visit func(Life) error) error {
	if l, ok := s.Source.(Lived); ok {
		return l.Lives(visit)
	}
	return nil
}
