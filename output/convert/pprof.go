package convert

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"goprof/output/pprof"
	"goprof/output/recording"
	"goprof/profile"
)

// writePProf sums samples up by stack, thread and state.
func writePProf(to io.Writer, src recording.Source, tell func(string)) error {
	i := src.Info()
	b := pprof.NewBuilder()
	b.NoCount = !i.Counts()
	second := i.Meta.Weight // of the values; the first is the count
	wall := false
	err := src.Each(func(s *profile.Sample) error {
		out := pprof.Sample{Stack: s.Stack, Labels: labels(s), Count: s.Looks(), Time: s.CPU}
		if i.States && !s.NoState {
			out.Labels.State = s.State.String()
		}
		wall = wall || s.Wall
		switch {
		case second == profile.Bytes:
			out.Time = time.Duration(s.Bytes) // the second value, whatever its unit
		case s.Wall && !(i.Asked && second == profile.CPUTime):
			out.Time = s.Span
		}
		b.Add(&out)
		return nil
	})
	if err != nil {
		return err
	}
	if b.Overflow > 0 && tell != nil {
		tell(fmt.Sprintf("%d samples had no room: their stacks are [profile full]", b.Overflow))
	}
	if second == profile.Samples && wall || !i.Asked && wall && second == profile.CPUTime {
		second = profile.WallTime
	}
	b.Second = second
	return b.Write(to, i.Meta)
}

// labels are whose a sample is.
func labels(s *profile.Sample) pprof.Labels {
	t := &s.Thread
	if !t.Virtual {
		return pprof.Labels{Thread: cmp.Or(t.JavaName, t.Name), TID: t.TID}
	}
	virtual := t.JavaName
	if virtual == "" {
		virtual = fmt.Sprintf("#%d", t.JavaID)
	}
	return pprof.Labels{Thread: t.Name, TID: t.TID, Virtual: virtual}
}
