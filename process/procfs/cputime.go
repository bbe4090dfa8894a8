package procfs

// CPUTime is the first line of /proc/stat: what the CPUs have done, in ticks (proc(5)). Guest time is in User.
type CPUTime struct {
	User, Nice, System, Idle, IOWait, IRQ, SoftIRQ, Steal uint64
}
