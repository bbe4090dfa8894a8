//go:build linux

package agent

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/resource"
)

// Processes with the same attributes form one group, for example the workers of a web server or the shells of a build.
// A group has its own batch. Groups that have used little share one batch, where threads have the names of the
// processes. So a server or a folder does not get too many batches.

const (
	// smallPart is the part of a CPU below which a group is small.
	smallPart = 0.01
	// mostGroups limits the groups between two cuts.
	mostGroups = 256
	// othersName is the service of small groups.
	othersName = "other-processes"
)

type othersGroup struct {
	*batch.Gatherer
	whose resource.Attributes
	pid   int // 0: the group has several processes
	name  string
}

// group returns the group of a process. It makes the group if there is room.
func (s *Others) group(p *other) *othersGroup {
	at := p.key
	if s.groups[at] == nil && len(s.groups) >= mostGroups {
		at = ""
	}
	g := s.groups[at]
	if g == nil {
		g = &othersGroup{whose: p.whose, pid: p.pid, name: p.name, Gatherer: batch.NewGatherer(batch.GatherOptions{
			Pools: p.kernel || s.o.Settings.Pools, MaxSamples: 1 << 12, MaxFrames: 1 << 16, MaxPoints: 1 << 14})}
		s.groups[at] = g
	}
	if g.pid != p.pid {
		g.pid = 0
	}
	return g
}

// keyOf returns the same text for processes with the same attributes.
func keyOf(whose resource.Attributes) string {
	var key strings.Builder
	for i := range whose {
		fmt.Fprintf(&key, "%s=%s\n", whose[i].Key, whose[i].Value())
	}
	return key.String()
}

func (s *Others) cut(now time.Time) {
	from := s.began
	s.began = now
	from, now = s.span.within(from, now)
	small := &batch.Batch{Resource: s.named(othersName, ""), From: from, To: now, Meta: s.meta(othersName, 0, from, now)}
	for key, g := range s.groups {
		b := g.Take(g.whose, s.meta(g.name, g.pid, from, now), from, now)
		if key == "" || used(b) < time.Duration(float64(now.Sub(from))*smallPart) {
			small.Samples = append(small.Samples, b.Samples...)
			continue
		}
		if g.pid > 0 {
			b.Resource = slices.Clone(g.whose)
			b.Resource.SetInt(resource.ProcessPID, int64(g.pid))
		}
		s.o.Offer(b)
	}
	if len(small.Samples) > 0 {
		s.o.Offer(small)
	}
	clear(s.groups)
}

func (s *Others) meta(name string, pid int, from, now time.Time) profile.Meta {
	return profile.Meta{Version: s.o.Version, PID: pid, MainClass: name, Mode: profile.ModeCPU, Engine: profile.EnginePerf,
		Start: from, Duration: now.Sub(from), Interval: time.Duration(s.interval.Load()), Weight: profile.CPUTime}
}

func used(b *batch.Batch) (d time.Duration) {
	for i := range b.Samples {
		d += time.Duration(b.Samples[i].Value(profile.CPUTime))
	}
	return d
}
