package arch

// ProbeLayout is how a BPF program at a probe sees a CPU's registers: struct pt_regs of amd64, struct user_pt_regs of
// arm64.
type ProbeLayout struct {
	// Offsets is, for each of Regs, where it stands there.
	Offsets [MaxRegs]int16
	// Args are the registers that hold the first arguments of a C function, as far as these are integers or pointers.
	Args []int8
	// Nop is the instruction at a marker for probes (sys/sdt.h).
	Nop []byte
}

// Arg is where the argument with a number stands, counted from 1.
func (l *ProbeLayout) Arg(number int) int { return int(l.Offsets[l.Args[number-1]]) }
