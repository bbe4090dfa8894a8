//go:build linux

package perf

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"goprof/sampler/bpf"
	"goprof/sampler/threads"
	"goprof/testdata/ctest"
	"goprof/testdata/sampletest"
)

// chanceOf asks the kernel for a process's entry.
func (c *chooser) chanceOf(pid int) (chance uint64, ok bool) {
	const lookUpElem = 1
	entry := &struct {
		pid    uint32
		chance uint64
	}{pid: uint32(pid)}
	attr := struct {
		table, _          uint32
		key, value, flags uint64
	}{table: uint32(c.table), key: uint64(uintptr(unsafe.Pointer(&entry.pid))),
		value: uint64(uintptr(unsafe.Pointer(&entry.chance)))}
	_, err := bpf.Do(lookUpElem, unsafe.Pointer(&attr), unsafe.Sizeof(attr))
	return entry.chance, err == nil
}

// A process that has left has no entry. Otherwise there would be no room for others in the end, and the kernel would
// copy its samples in vain.
func TestChooser(t *testing.T) {
	needPerf(t)
	c, err := newChooser()
	if err != nil {
		t.Skip("the kernel takes no BPF program from us: ", err)
	}
	defer c.close()
	for _, share := range []float64{0, 0.25, 1} {
		if err := c.choose(4711, share); err != nil {
			t.Fatal(err)
		}
		if chance, ok := c.chanceOf(4711); !ok || float64(chance) != share*(1<<32) {
			t.Errorf("%v: the kernel has %d, %v", share, chance, ok)
		}
	}
	c.leaveOut(4711)
	if _, ok := c.chanceOf(4711); ok {
		t.Error("the process has an entry after it has left")
	}
	before := standardFiles()
	c.leaveOut(4711) // it fails, and closes no descriptor of others
	if after := standardFiles(); before != after {
		t.Errorf("standard files %v, then %v", before, after)
	}
	for pid := range mostChosen {
		if err := c.choose(pid+1, 1); err != nil {
			t.Fatalf("there is no room for %d processes: %v", mostChosen, err)
		}
	}
}

// The kernel lets the share of samples pass that was asked for.
func TestChooserDraws(t *testing.T) {
	g := NewGroup(time.Millisecond, 0)
	sampletest.RunGroup(t, g, ErrNoWide)
	p := ctest.Run(t, ctest.Spin)
	p.Number(t)
	m := sampletest.Join(t, g.Member(p.PID))
	m.SetShare(0.25)
	ctest.Eventually(t, "the share is known", func() bool { return m.Met() > 0 })
	met, used := m.Met(), threads.ProcessCPU(p.PID)
	for threads.ProcessCPU(p.PID)-used < 2*time.Second {
		time.Sleep(20 * time.Millisecond)
	}
	due := float64(threads.ProcessCPU(p.PID)-used) / float64(time.Millisecond) / 4
	got := float64(m.Met() - met)
	if off := got - due; math.Abs(off) > 0.15*due+5*math.Sqrt(due) && (off > 0 || got == 0 || !sampletest.MayMiss()) {
		t.Errorf("%.0f samples, %.0f are due", got, due)
	}
	m.End()
}
