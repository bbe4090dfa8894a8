package redaction

import (
	"slices"

	"goprof/output/recording"
	"goprof/profile"
	"goprof/profile/redact"
)

// Redacted is a recording without names.
type Redacted struct {
	of recording.Source
	by *redact.Redactor
}

func Of(src recording.Source, by *redact.Redactor) *Redacted { return &Redacted{src, by} }

// Info returns the Info of the recording, without the name of its file.
func (s *Redacted) Info() recording.Info {
	i := s.of.Info()
	i.Name = s.by.Path(i.Name)
	i.Meta, i.Summary = s.by.Meta(i.Meta), s.by.Summary(i.Summary)
	notes := make([]string, len(i.Notes))
	for n, text := range i.Notes {
		notes[n] = s.by.Text(text)
	}
	i.Notes = notes
	i.Parts = slices.Clone(i.Parts)
	for k := range i.Parts {
		p := &i.Parts[k]
		p.Name, p.Kind.Name = s.by.Text(p.Name), s.by.Text(p.Kind.Name) // so that it is the same as the Event of samples
		p.Meta, p.Summary = s.by.Meta(p.Meta), s.by.Summary(p.Summary)
	}
	earlier := make(map[profile.Thread][]string, len(i.Earlier))
	for t, names := range i.Earlier {
		now := s.by.Thread(t)
		for _, name := range names {
			t.JavaName = name
			was := s.by.Thread(t)
			earlier[now] = append(earlier[now], was.JavaName)
		}
	}
	i.Earlier = earlier
	return i
}

func (s *Redacted) Each(visit func(*profile.Sample) error) error {
	known := s.by.Functions()
	return s.of.Each(func(sample *profile.Sample) error {
		out := s.by.Sample(sample, known)
		return visit(&out)
	})
}

// Marks visits the recording's marks, if it has any.
func (s *Redacted) Marks(visit func(recording.Mark) error) error {
	return recording.Marks(s.of, func(m recording.Mark) error {
		m.Text = s.by.Text(m.Text)
		return visit(m)
	})
}

// Lives visits the recording's lives, if it has any.
func (s *Redacted) Lives(visit func(recording.Life) error) error {
	return recording.Lives(s.of, func(l recording.Life) error {
		l.Thread = s.by.Thread(l.Thread)
		return visit(l)
	})
}
