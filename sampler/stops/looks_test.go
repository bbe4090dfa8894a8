//go:build linux

package stops_test

import (
	"context"
	"testing"
	"time"

	"goprof/sampler"
	"goprof/sampler/visit"
	"goprof/sampler/wall"
	"goprof/testdata/ctest"
)

// TestLooksAreMadeBefore: an engine that stops threads has made all looks before its first stop. A late stop may come
// while the engine takes a look, and nothing is allocated while a thread stands still. Members of a group share looks
// that were made before.
func TestLooksAreMadeBefore(t *testing.T) {
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	group := visit.NewGroup(time.Second, 0)
	group.Run(over)
	for name, e := range map[string]sampler.Engine{
		"visit": visit.New(p.PID, ctest.CPU()), "member": group.Member(p.PID, ctest.CPU()),
		"wall": wall.New(p.PID, ctest.CPU(), wall.Options{}),
	} {
		q := sampler.NewQueue(50)
		e.Run(over, sampler.Config{Interval: time.Second}, q)
		taken := 0
		if n := testing.AllocsPerRun(q.Size()-1, func() {
			if q.Take() != nil {
				taken++
			}
		}); n != 0 || taken != q.Size() {
			t.Errorf("%s: %d looks were taken, with %v allocations for each", name, taken, n)
		}
	}
}
