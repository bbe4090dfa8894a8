package arch

// PerfLayout is how perf_event_open names a CPU's registers: by numbers of its own, which are not those of DWARF.
type PerfLayout struct {
	// Mask is perf_event_attr.sample_regs_user: the registers to ask for, by bit.
	Mask uint64
	// Order is the index into Regs of each bit of Mask, from the lowest bit on.
	Order []int8
	// Unreported are registers that older kernels report as -1 for a thread in the kernel. If all of them are -1, none of
	// them is known.
	Unreported uint64
}

// Decode reads the registers of one sample, which has Len values. It returns the registers (by bit) that the kernel did
// not report.
func (p *PerfLayout) Decode(values func(i int) uint64, r *Regs) (unknown uint64) {
	for i, reg := range p.Order {
		r[reg] = values(i)
	}
	if p.Unreported == 0 {
		return 0
	}
	for reg := range MaxRegs {
		if p.Unreported&(1<<reg) != 0 && r[reg] != ^uint64(0) {
			return 0
		}
	}
	return p.Unreported
}

// Len returns how many registers a sample has.
func (p *PerfLayout) Len() int { return len(p.Order) }
