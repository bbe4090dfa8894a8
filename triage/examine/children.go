//go:build linux

package examine

import (
	"fmt"
	"os"
	"slices"
	"sort"
	"strconv"
	"time"

	"goprof/process/procfs"
	"goprof/profile"
	"goprof/profile/pools"
	"goprof/triage"
)

// children are the processes that descend from the JVM, at some moment.
type children struct {
	jvm int
	at  time.Time
	all map[int]child
}

type child struct {
	name  string
	began uint64
	cpu   time.Duration
}

const maxChildren = 1 << 12

// readChildren reads the descendants of the JVM as soon as a dump shows a thread that waits for one. It has to read all
// processes of the machine.
func (x *examination) readChildren(threads []profile.ThreadDump) {
	waits := func(t profile.ThreadDump) bool { return pools.At(&t).Doing == pools.ForProcess }
	if x.children == nil && slices.ContainsFunc(threads, waits) {
		x.children = descendants(x.session.Process.PID())
	}
}

// since returns the present descendants, and the CPU time that they have used since c was read.
func (c *children) since() (list []triage.Child) {
	if c == nil {
		return nil
	}
	now := descendants(c.jvm)
	over := now.at.Sub(c.at)
	for pid, p := range now.all {
		was, ok := c.all[pid]
		began := !ok || was.began != p.began
		if began {
			was.cpu = 0
		}
		list = append(list, triage.Child{PID: pid, Name: p.name, Began: began,
			CPU: float64(p.cpu-was.cpu) / float64(max(over, 1))})
	}
	sort.Slice(list, func(i, j int) bool { return list[i].PID < list[j].PID })
	return slices.Grow(list, 1) // not nil: the list is known, and may be empty
}

// descendants returns the descendants of the JVM. It reads all processes.
func descendants(jvm int) *children {
	c := &children{jvm: jvm, at: time.Now(), all: map[int]child{}}
	entries, _ := os.ReadDir("/proc")
	of := map[int][]int{}
	read := map[int]child{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		b := statOf(pid)
		if stat, ok := procfs.ParseStat(b); ok && stat.Alive() {
			of[stat.Parent] = append(of[stat.Parent], pid)
			read[pid] = child{procfs.Comm(b), stat.Start, procfs.Ticks(stat.Ticks)}
		}
	}
	pending := of[jvm]
	for len(pending) > 0 && len(c.all) < maxChildren {
		pid := pending[0]
		pending = append(pending[1:], of[pid]...)
		c.all[pid] = read[pid]
	}
	return c
}

// statOf reads /proc/PID/stat, with the CPU time of all threads. It returns nil if the process has ended.
func statOf(pid int) []byte {
	b, err := procfs.Read(fmt.Sprintf("/proc/%d/stat", pid), maxStat)
	if err != nil {
		return nil
	}
	return b
}

const maxStat = 4 << 10
