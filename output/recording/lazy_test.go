package recording

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"goprof/profile"
)

// lazySamples are samples of three stacks that occur repeatedly. Two of the stacks only differ in how certain the leaf
// is.
func lazySamples() (all []profile.Sample) {
	for i, s := range slices.Repeat(cpuSamples(), 20) {
		s.At = moment(time.Duration(i) * 90 * time.Millisecond)
		stack := profile.Stack{Frames: slices.Clone(s.Stack.Frames), Truncated: s.Stack.Truncated}
		stack.Frames[0].Sure = profile.Certainty(i % 3 / 2)
		s.Stack = &stack
		all = append(all, s)
	}
	return all
}

// sampleText returns all of a sample, except the facts that stand for its stack before the stack is read.
func sampleText(s *profile.Sample) string {
	one := *s
	text := one.Stack.Truncated.String()
	for _, f := range one.Stack.Frames {
		text += fmt.Sprintf(", %s %v %v %d %d", f.Func.Name, f.Kind, f.Sure, f.Line, f.BCI)
	}
	one.Stack, one.Unread, one.StackNumber = nil, nil, 0
	return fmt.Sprintf("%+v %s", one, text)
}

// TestLazily: samples are the same as in Each if their stacks are read later, or only if their number is new.
func TestLazily(t *testing.T) {
	for _, c := range []struct {
		mode   string
		filter Filter
	}{
		{profile.ModeCPU, Filter{}},
		{profile.ModeWall, Filter{}},
		{profile.ModeCPU, Filter{Include: regexp.MustCompile("sell"), From: time.Second}},
		{profile.ModeCPU, Filter{Exclude: regexp.MustCompile("truncated"), Thread: regexp.MustCompile("G1|worker")}},
	} {
		src, err := c.filter.Of(reading(t, jfrOf(t, c.mode, profile.Samples, lazySamples()), Options{}))
		if err != nil {
			t.Fatal(err)
		}
		var want, got []string
		read, stacks := 0, make(map[uint64]profile.Stack)
		if err := src.Each(func(s *profile.Sample) error { want = append(want, sampleText(s)); return nil }); err != nil {
			t.Fatal(err)
		}
		if err := src.Visit(LaterStacks, func(s *profile.Sample) error {
			stack, known := stacks[s.StackNumber]
			if !known {
				if err := s.Read(); err != nil {
					return err
				}
				read++
				stack = profile.Stack{Frames: slices.Clone(s.Stack.Frames), Truncated: s.Stack.Truncated}
				stacks[s.StackNumber] = stack
			}
			one := *s
			one.Stack = &stack
			got = append(got, sampleText(&one))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("%s, %+v: %d samples, not %d", c.mode, c.filter, len(got), len(want))
		}
		if read > 6 {
			t.Errorf("%s: %d stacks were read", c.mode, read)
		}
		n := 0
		if err := src.Visit(NoStacks, func(s *profile.Sample) error { n++; return nil }); err != nil || n != len(want) {
			t.Errorf("%s: %d samples without stacks, not %d: %v", c.mode, n, len(want), err)
		}
	}
}
