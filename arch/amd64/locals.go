package amd64

import (
	"debug/elf"

	"goprof/arch"
)

// locals: the thread pointer is fs_base, word 21 of struct user_regs_struct (arch/x86/include/asm/user_64.h). The table
// is the second word of glibc's tcbhead_t (sysdeps/x86_64/nptl/tls.h) and of musl's struct pthread
// (src/internal/pthread_impl.h).
var locals = arch.LocalsLayout{
	RegSet:     arch.RegSetGeneral,
	PointerAt:  21 * 8,
	Descriptor: uint32(elf.R_X86_64_TLSDESC),
	Module:     uint32(elf.R_X86_64_DTPMOD64),
	Offset:     uint32(elf.R_X86_64_DTPOFF64),
	Pointer:    uint32(elf.R_X86_64_TPOFF64),
	GlibcTable: 8,
	MuslTable:  8,
}
