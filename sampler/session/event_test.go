//go:build linux

package session

import "testing"

// TestMayNeedProbes: a recording of a counter need not keep the right to set probes.
func TestMayNeedProbes(t *testing.T) {
	for name, want := range map[string]bool{
		"page-faults": false, "major-faults": false, "context-switches": false, "cpu-migrations": false, "cycles": false,
		"r1a2": false, "r0xead": false, "read": true, "r": true, "r0x": true,
		"alloc": true, "exceptions": true, "malloc": true, "libc:write": true, "sched:sched_switch": true, "nothing": true,
	} {
		if got := MayNeedProbes(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
