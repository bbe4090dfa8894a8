//go:build linux

package main

import (
	"strings"
	"testing"
)

// TestKeptTold: recordings that were finished are named, whether or not a page follows.
func TestKeptTold(t *testing.T) {
	k := &keptRecordings{}
	k.note("findings.wall.jfr", nil)
	k.note("findings.cpu.jfr", nil)
	for _, c := range []struct {
		kept *keptRecordings
		want string
	}{
		{nil, ""}, {&keptRecordings{}, ""},
		{k, "recordings: findings.cpu.jfr, findings.wall.jfr   next: goprof heat findings.cpu.jfr\n"},
	} {
		var b strings.Builder
		if c.kept.tell(&b); b.String() != c.want {
			t.Errorf("%q, want %q", b.String(), c.want)
		}
	}
}
