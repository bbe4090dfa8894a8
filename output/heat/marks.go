package heat

import (
	"cmp"
	"sort"
	"time"

	"goprof/output"
	"goprof/output/recording"
)

const (
	maxMarks = 5000 // of a page, which keeps the longest
	maxText  = 200  // bytes of a mark's text
)

// marks are times and spans of time: collections, safepoints, pauses.
type marks struct {
	list []mark
	left int // left out for want of room
}

type mark struct {
	Kind string  `json:"kind"`
	Text string  `json:"text"`
	At   float64 `json:"at"`  // seconds since the start
	For  float64 `json:"for"` // seconds
}

func (m *marks) read(src recording.Source, g *grid) error {
	err := recording.Marks(src, func(one recording.Mark) error {
		at := one.At.Wall
		if at < g.start || uint64(at)-uint64(g.start) > g.length {
			return nil
		}
		text := output.CleanName(cmp.Or(one.Text, one.Kind))
		if len(text) > maxText {
			text = text[:maxText]
		}
		m.list = append(m.list, mark{
			Kind: output.CleanName(one.Kind), Text: output.Printable(text),
			At: float64(uint64(at)-uint64(g.start)) / float64(time.Second), For: max(one.For, 0).Seconds(),
		})
		if len(m.list) >= 4*maxMarks {
			m.bound()
		}
		return nil
	})
	m.bound()
	sort.SliceStable(m.list, func(i, j int) bool { return m.list[i].At < m.list[j].At })
	return err
}

// bound keeps the longest marks.
func (m *marks) bound() {
	if len(m.list) <= maxMarks {
		return
	}
	sort.SliceStable(m.list, func(i, j int) bool { return m.list[i].For > m.list[j].For })
	m.left += len(m.list) - maxMarks
	m.list = m.list[:maxMarks]
}
