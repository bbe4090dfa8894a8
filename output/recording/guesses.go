package recording

import "goprof/profile"

// Guesses counts the guessed leaves of a recording by their compiled methods. Only goprof's own JFR files show which
// leaves are guesses.
func Guesses(src Source) (profile.Guesses, error) {
	var g profile.Guesses
	i := src.Info()
	if i.Format != JFR {
		return g, nil
	}
	var known profile.ByStack[*profile.Func] // for one reading: nil if the leaf is not a guess
	err := Visit(src, LaterStacks, func(s *profile.Sample) error {
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

// Settled returns a recording with stacks as they should be shown: if a compiled method has many guessed leaves, these
// samples count for the method itself. Settled reads the recording once to count guesses. If nothing changes, it
// returns src itself.
func Settled(src Source) (Source, error) {
	if s := src.Info().Summary; s != nil && float64(s.LeafGuessed) < profile.GuessedMuch*float64(s.Samples) {
		return src, nil // no method has enough
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
	of      *profile.Sample // its stack is not read yet
	unread  func() error    // reads it
}

func (s *shown) Each(visit func(*profile.Sample) error) error { return s.Visit(AllStacks, visit) }

func (s *shown) Visit(stacks Stacks, visit func(*profile.Sample) error) error {
	switch stacks {
	case NoStacks:
		return Visit(s.Source, NoStacks, visit)
	case AllStacks:
		visit = readFirst(visit)
	}
	read := s.read
	return Visit(s.Source, LaterStacks, func(of *profile.Sample) error {
		if s.settle(of); of.Unread != nil {
			s.of, s.unread, of.Unread = of, of.Unread, read
		}
		return visit(of)
	})
}

func (s *shown) read() error {
	if err := s.unread(); err != nil {
		return err
	}
	s.settle(s.of)
	return nil
}

// settle changes a copy of the stack, because samples share stacks.
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

func (s *shown) Marks(visit func(Mark) error) error { return Marks(s.Source, visit) }
func (s *shown) Lives(visit func(Life) error) error { return Lives(s.Source, visit) }
