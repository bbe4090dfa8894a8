package vitals

import (
	"time"

	"goprof/process/maybe"
)

// Collected is a finished collection, or a finished pause of one.
type Collected struct {
	Of     *Collector
	Length time.Duration
	// Ended is the time since the JVM began. It is known for the last collection of each collector. If several have
	// ended between two readings, the others share the rest of the time.
	Ended maybe.Value[time.Duration]
}

// maxEnded limits the collections between two readings.
const maxEnded = 1 << 10

// Ended returns the collections that have ended between two readings of one JVM.
func Ended(a, b *GC) (list []Collected) {
	for i := range b.Collectors {
		now := &b.Collectors[i]
		if i >= len(a.Collectors) || a.Collectors[i].Name != now.Name {
			continue
		}
		was := &a.Collectors[i]
		n := int64(now.ended()) - int64(was.ended())
		if spent := now.Time - was.Time; n > 0 && spent >= 0 {
			list = append(list, now.lastOf(int(min(n, maxEnded)), spent)...)
		}
	}
	return list
}

func (c *Collector) ended() uint64 {
	if c.UnderWay {
		return c.Count - 1
	}
	return c.Count
}

// lastOf returns the last n collections. spent is their length together.
func (c *Collector) lastOf(n int, spent time.Duration) (list []Collected) {
	begun, ok := c.Begun.Get()
	ended, ok2 := c.Ended.Get()
	last := Collected{Of: c, Length: spent / time.Duration(n), Ended: maybe.If(ended, ok2 && !c.UnderWay)}
	if n > 1 && ok && last.Ended.IsKnown() {
		last.Length = min(ended-begun, spent)
	}
	for range n - 1 {
		list = append(list, Collected{Of: c, Length: (spent - last.Length) / time.Duration(n-1)})
	}
	return append(list, last)
}
