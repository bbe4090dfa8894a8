//go:build linux

package oracle

import (
	"math/rand/v2"
	"os"

	"goprof/arch"
	"goprof/session"
)

// somewhereInBlock returns the pc of an instruction that runs as often as the one at a pc, drawn by lot.
//
// An emulator takes interrupts only between blocks of code, and a block ends with a branch (qemu,
// accel/tcg/cpu-exec.c, cpu_handle_interrupt). So all pcs that a stop tells there are beginnings of blocks. A CPU stops
// anywhere. In an emulator all instructions of a block take their turn as often as its first.
func somewhereInBlock(s *session.Session, p leafPlace) uint64 {
	code, err := s.VM.Code(p.b, nil)
	if err != nil || p.pc < p.b.Begin {
		return p.pc
	}
	block := []uint64{}
	for at := p.pc - p.b.Begin; at < uint64(len(code)); {
		var in arch.Inst
		if !s.Process.CPU().Read(code, uint32(at), &in) {
			break
		}
		block = append(block, p.b.Begin+at)
		if at += uint64(in.Len); in.Flow != arch.FlowNext {
			break
		}
	}
	if len(block) == 0 {
		return p.pc
	}
	return block[rand.IntN(len(block))]
}

// inEmulator reports whether an emulator runs the tests.
func inEmulator() bool { return os.Getenv("GOPROF_EMULATED") != "" }
