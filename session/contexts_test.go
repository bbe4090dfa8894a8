//go:build linux

package session

import (
	"testing"

	"goprof/profile"
	"goprof/sampler/span"
)

// TestContextNotes: the note on spans that the kernel did not read names a remedy only if there is one.
func TestContextNotes(t *testing.T) {
	few := profile.Links{NotStopped: 3, Read: 1, None: 1}
	for name, c := range map[string]struct {
		opt     RecordOptions
		links   profile.Links
		refused error
		want    string // "no note", or its remedy
	}{
		"CPU time":             {RecordOptions{Engine: PerfEngine}, few, nil, "--engine ptrace"},
		"events have no stops": {RecordOptions{Engine: PerfEngine, Event: &EventPlan{}}, few, nil, ""},
		"too few files":        {RecordOptions{Engine: PerfEngine}, few, span.ErrFiles, "ulimit -n 65536"},
		"most were read":       {RecordOptions{Engine: PerfEngine}, profile.Links{NotStopped: 3, Read: 3}, nil, "no note"},
		"threads that waited":  {RecordOptions{Engine: PtraceEngine, Mode: WallMode}, few, nil, "no note"},
	} {
		r := &recording{opt: c.opt}
		r.contexts.links = c.links
		got := "no note"
		if notes := r.contextNotes(c.refused); len(notes) > 0 {
			got = notes[0].Remedy
		}
		if got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}
