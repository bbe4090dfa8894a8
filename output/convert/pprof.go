package convert

import (
	"fmt"
	"io"

	"goprof/output/pprof"
	"goprof/output/recording"
)

// writePProf sums up samples by stack, thread and state.
func writePProf(to io.Writer, src recording.Source, tell func(string)) error {
	i := src.Info()
	o := pprof.Options{Weight: i.Meta.Weight, Asked: i.Asked, States: i.States, NoCount: !i.Counts(),
		CountOnly: i.CountsOnly()}
	if i.All {
		o.Part, o.NoCount, o.CountOnly = i.Part, false, false
		for _, p := range i.Parts {
			o.Parts = append(o.Parts, p.Kind)
		}
	}
	b := pprof.NewBuilder(o)
	if err := recording.Visit(src, recording.LaterStacks, b.Add); err != nil {
		return err
	}
	if b.Overflow > 0 && tell != nil {
		tell(fmt.Sprintf("%d samples had no room: their stacks are [profile full]", b.Overflow))
	}
	return b.Write(to, i.Meta)
}
