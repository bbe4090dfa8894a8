package arch

// Offsets in the ELF note of a thread in a core file (NT_PRSTATUS, struct elf_prstatus of include/linux/elfcore.h). The
// part before the registers has the same size on all 64-bit CPUs. The registers have Facts.PrstatusSize bytes.
const (
	CoreSignal  = 12 // short: the signal that the thread was to get
	CoreThread  = 32 // int: the thread's number
	CoreUser    = 48 // CPU time in user mode: seconds, microseconds
	CoreSystem  = 64 // CPU time in the kernel
	CoreRegs    = 112
	MaxSigInfo  = 128
	SigInfoAddr = 16 // the offset in a siginfo_t of the address of a fault
)
