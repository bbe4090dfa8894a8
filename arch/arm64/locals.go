package arm64

import (
	"debug/elf"

	"goprof/arch"
)

// locals: the thread pointer is tpidr_el0, which has a register set of its own, NT_ARM_TLS (include/uapi/linux/elf.h).
// The table is the first word of glibc's tcbhead_t (sysdeps/aarch64/nptl/tls.h), and the last one of musl's struct
// pthread, which ends at the thread pointer (src/internal/pthread_impl.h, TLS_ABOVE_TP). Both reserve 16 bytes above
// the thread pointer (glibc: tcbhead_t; musl: GAP_ABOVE_TP).
var locals = arch.LocalsLayout{
	RegSet:     0x401,
	Descriptor: uint32(elf.R_AARCH64_TLSDESC),
	Module:     uint32(elf.R_AARCH64_TLS_DTPMOD64),
	Offset:     uint32(elf.R_AARCH64_TLS_DTPREL64),
	Pointer:    uint32(elf.R_AARCH64_TLS_TPREL64),
	GlibcTable: 0,
	MuslTable:  -8,
	Above:      true,
	Reserved:   16,
}
