package procfs

import "bytes"

// CPUTime is the first line of /proc/stat: how the CPUs have spent their time, in ticks (proc(5)). Guest time is
// included in User and Nice.
type CPUTime struct {
	User, Nice, System, Idle, IOWait, IRQ, SoftIRQ, Steal uint64
}

func (c CPUTime) Total() uint64 {
	return c.User + c.Nice + c.System + c.Idle + c.IOWait + c.IRQ + c.SoftIRQ + c.Steal
}

// MachineStat has the fields of /proc/stat that goprof uses.
type MachineStat struct {
	CPUTime CPUTime
	CPUs    int    // online CPUs
	Running uint64 // threads that run or wait for a CPU
}

// maxTicks bounds a number of ticks, so that sums do not overflow.
const maxTicks = 1 << 60

func ParseMachineStat(b []byte) (m MachineStat, ok bool) {
	seen := 0
	for line := range bytes.Lines(b) {
		key, rest := cutWord(line)
		switch {
		case string(key) == "cpu":
			if !parseCPUTime(bytes.TrimLeft(rest, " "), &m.CPUTime) {
				return MachineStat{}, false
			}
			seen++
		case bytes.HasPrefix(key, []byte("cpu")):
			m.CPUs++
		case string(key) == "procs_running":
			if m.Running, _, ok = cutNumber(rest); ok {
				seen++
			}
		}
	}
	if seen != 2 || m.CPUs == 0 {
		return MachineStat{}, false
	}
	return m, true
}

func parseCPUTime(b []byte, c *CPUTime) bool {
	for _, v := range []*uint64{&c.User, &c.Nice, &c.System, &c.Idle, &c.IOWait, &c.IRQ, &c.SoftIRQ, &c.Steal} {
		var ok bool
		if *v, b, ok = cutNumber(b); !ok || *v > maxTicks {
			return false
		}
	}
	return true
}
