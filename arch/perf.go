package arch

// PerfLayout is how perf_event_open names a CPU's registers: by numbers of its own, which are not
// those of DWARF.
type PerfLayout struct {
	// Mask is perf_event_attr.sample_regs_user: the registers to ask for, by bit.
	Mask uint64
	// Order is, for each bit of Mask from the lowest on, which of Regs it is.
	Order []int8
	// Untold are registers that older kernels give as -1 for a thread that is in the kernel. All of
	// them being -1 means that none is known.
	Untold uint64
}

// Decode reads the registers of one sample. values holds Len of them. It returns which registers (by bit)
// the kernel did not tell.
func (p *PerfLayout) Decode(values func(i int) uint64, r *Regs) (unknown uint64) {
	for i, reg := range p.Order {
		r[reg] = values(i)
	}
	if p.Untold == 0 {
		return 0
	}
	for reg := range MaxRegs {
		if p.Untold&(1<<reg) != 0 && r[reg] != ^uint64(0) {
			return 0
		}
	}
	return p.Untold
}

// Len is how many registers a sample has.
func (p *PerfLayout) Len() int { return len(p.Order) }
