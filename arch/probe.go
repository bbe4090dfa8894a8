package arch

// ProbeLayout is how a BPF program at a probe sees a CPU's registers: struct pt_regs of amd64, struct user_pt_regs of
// arm64.
type ProbeLayout struct {
	// Offsets is the offset of each of Regs in that struct.
	Offsets [MaxRegs]int16
	// Args are the registers that hold the first integer or pointer arguments of a C function.
	Args []int8
	// Nop is the instruction at a marker for probes (sys/sdt.h).
	Nop []byte
}

// Arg returns the offset of an argument in that struct. The first argument has the number 1.
func (l *ProbeLayout) Arg(number int) int { return int(l.Offsets[l.Args[number-1]]) }
