//go:build linux

package visit

import "testing"

// A group that may not use some CPU does not begin. Each process then has a sampler of its own, which can do without
// that CPU.
func TestGroupComesToAllCPUs(t *testing.T) {
	v := &visits{cpus: []visited{{number: 0}, {number: 2}}}
	if !v.comesTo([]int{2, 0}) || v.comesTo([]int{0, 1, 2}) {
		t.Error("CPU 1 is visited, or one of the others is not")
	}
}
