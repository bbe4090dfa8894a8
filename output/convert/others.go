package convert

import (
	"fmt"
	"sort"

	"goprof/output/jfr"
	"goprof/output/recording"
	"goprof/profile"
)

// others are the events of a recording that are not samples, ordered by time. Each is written before later samples, so
// that it is in the right chunk.
type others []other

type other struct {
	at    profile.Instant
	write func(*jfr.Writer) error
}

// maxOthers bounds the kept events, of some 200 bytes each.
const maxOthers = 1 << 17

func othersOf(src *watched, tell func(string)) (list others, err error) {
	left := int64(0)
	keep := func(at profile.Instant, write func(*jfr.Writer) error) {
		if len(list) == maxOthers {
			left++
			return
		}
		list = append(list, other{at, write})
	}
	err = src.Lives(func(l recording.Life) error {
		keep(l.At, func(w *jfr.Writer) error {
			if l.End {
				return w.ThreadEnd(l.At, l.Thread)
			}
			return w.ThreadStart(l.At, l.Thread)
		})
		return nil
	})
	if err == nil {
		err = src.Marks(func(m recording.Mark) error {
			keep(m.At, func(w *jfr.Writer) error { return w.Mark(m.At, m.For, m.Kind, m.Text) })
			return nil
		})
	}
	if left > 0 && tell != nil {
		tell(fmt.Sprintf("there are too many marks, and beginnings and ends of threads: %d are left out", left))
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].at.Ticks < list[j].at.Ticks })
	return list, err
}

// write writes the events up to a given time.
func (o *others) write(w *jfr.Writer, until int64) error {
	for len(*o) > 0 && (*o)[0].at.Ticks <= until {
		if err := (*o)[0].write(w); err != nil {
			return err
		}
		*o = (*o)[1:]
	}
	return nil
}
