package amd64

import "goprof/arch"

// The tracer forgets the registers that are written by instructions which it does not model. This file lists these
// registers, by Intel SDM volume 2. If a register were missing here, the tracer would report a value that the register
// no longer has. So a test compares the list with objdump (TestClobberAgainstObjdump).

func (s state) forget(regs ...uint8) {
	for _, r := range regs {
		s.Regs[r] = arch.Loc{}
	}
}

// writesReg forgets the instruction's reg operand, which it writes.
func (s state) writesReg(in *inst) { s.set(in.Reg, arch.Loc{}) }

// writesRM forgets the instruction's r/m operand, which it writes.
func (s state) writesRM(in *inst) {
	if in.Mem {
		s.store(s.address(in), arch.Loc{})
		return
	}
	s.set(in.RM, arch.Loc{})
}

// clobber forgets what an instruction with an opcode of one byte writes.
func (s state) clobber(in *inst) {
	switch op := in.Op; {
	case op < 0x40:
		s.clobberArith(in)
	case op == 0x63 || op == 0x69 || op == 0x6b || op == 0x8a: // movsxd, imul, mov r8
		s.writesReg(in)
	case op == 0x86 || op == 0x87: // xchg
		s.writesReg(in)
		s.writesRM(in)
	case op >= 0x90 && op <= 0x97: // xchg rax, r; with rax itself a nop
		if in.RM != 0 {
			s.set(in.RM, arch.Loc{})
			s.forget(rax)
		}
	case op == 0x99: // cqo
		s.forget(rdx)
	case op == 0x98, op == 0x9f, op == 0xa0, op == 0xa1, op == 0xd7, op == 0xdf, // cdqe, lahf, mov rax, xlat, fnstsw
		op == 0xe4, op == 0xe5, op == 0xec, op == 0xed: // in
		s.forget(rax)
	case op >= 0x6c && op <= 0x6f, op >= 0xa4 && op <= 0xa7, op >= 0xaa && op <= 0xaf: // string instructions
		s.forget(rsi, rdi, rcx, rax)
	case op >= 0xb0 && op <= 0xbf: // mov r, imm
		s.set(in.RM, arch.Loc{})
	case op == 0xf6 || op == 0xf7:
		switch in.OpX {
		case 2, 3: // not, neg
			s.writesRM(in)
		case 4, 5, 6, 7: // mul, imul, div, idiv
			s.forget(rax, rdx)
		}
	case op == 0x8c, op == 0xc0, op == 0xc1, op >= 0xd0 && op <= 0xd3, // mov from a segment register, shifts
		op == 0xc6, op == 0xc7, op == 0xfe, op == 0xff: // mov imm, inc, dec
		s.writesRM(in)
	}
}

// clobberArith forgets what add, or, adc, sbb, and, sub and xor write, in their forms without a ModRM immediate. cmp
// writes nothing.
func (s state) clobberArith(in *inst) {
	if in.Op >= 0x38 { // cmp
		return
	}
	dst, mem := in.RM, in.Mem
	switch in.Op & 7 {
	case 2, 3:
		dst, mem = in.Reg, false
	case 4, 5:
		s.forget(rax)
		return
	}
	switch {
	case mem:
		s.store(s.address(in), arch.Loc{})
	case dwarf[dst] == rsp && in.W:
		s.Regs[rsp] = s.Token()
	default:
		s.set(dst, arch.Loc{})
	}
}

// stepTwoByte executes an instruction whose opcode follows 0F.
func (t *tracer) stepTwoByte(s state, in *inst) arch.Way {
	switch op := in.Op; {
	case op >= 0x80 && op <= 0x8f:
		t.branch(s, in)
	// ud2, ud1, ud0, sysret, sysenter, sysexit
	case op == 0x0b, op == 0xb9, op == 0xff, op == 0x07, op == 0x34, op == 0x35:
		return arch.WayEnds
	case op == 0xa0, op == 0xa8: // push fs, gs
		s.moveSP(-8)
		s.store(s.Regs[rsp], arch.Loc{})
	case op == 0xa1, op == 0xa9: // pop fs, gs
		s.moveSP(8)
	case op >= 0x40 && op <= 0x4f, op == 0xaf, op == 0xb6, op == 0xb7, op == 0xbe, op == 0xbf,
		op == 0xb8, op == 0xbc, op == 0xbd, op == 0x02, op == 0x03: // cmov, imul, movzx, movsx, popcnt, bsf, bsr, lar, lsl
		s.writesReg(in)
	case op == 0xa4, op == 0xa5, op == 0xac, op == 0xad, op >= 0x90 && op <= 0x9f, // shld, shrd, setcc
		op == 0xab, op == 0xb3, op == 0xbb, op == 0xba && in.OpX >= 5, // bts, btr, btc
		op == 0x00 && in.OpX < 2, op == 0x01 && in.OpX == 4, // sldt, str, smsw
		op == 0x1e && in.OpX == 1, op == 0xae && in.Mod == 3 && in.Rep: // rdssp, rdfsbase
		s.writesRM(in)
	case op == 0xb0, op == 0xb1: // cmpxchg
		s.writesRM(in)
		s.forget(rax)
	case op == 0xc0, op == 0xc1: // xadd
		s.writesReg(in)
		s.writesRM(in)
	case op == 0xc7: // cmpxchg16b; rdrand, rdseed, rdpid
		s.writesRM(in)
		s.forget(rax, rdx)
	case op >= 0xc8 && op <= 0xcf: // bswap
		s.set(in.RM, arch.Loc{})
	case op == 0x01, op == 0x31, op == 0x32, op == 0x33, op == 0xa2: // rdtscp and xgetbv, rdtsc, rdmsr, rdpmc, cpuid
		s.forget(rax, rcx, rdx)
		if op == 0xa2 {
			s.forget(rbx)
		}
	case op == 0x05: // syscall
		s.forget(rax, rcx, r11)
	default:
		s.clobberVector(in)
	}
	return arch.WayGoesOn
}

// clobberVector forgets what vector instructions write, and all others of VEX, EVEX and the maps 0F38 and 0F3A. Few of
// them write a general register.
func (s state) clobberVector(in *inst) {
	switch op := in.Op; in.Map {
	case 1:
		switch {
		case op == 0x2c && in.Rep, op == 0x2d && in.Rep, in.Vec && in.Rep && (op == 0x78 || op == 0x79), // cvt to an integer
			op == 0x50, op == 0xc5, op == 0xd7, in.Vec && op == 0x93: // movmskps, pextrw, pmovmskb, kmov
			s.writesReg(in)
		case op == 0x7e && !in.Rep: // movd, movq
			s.writesRM(in)
		}
	case 2:
		switch op {
		case 0xf2, 0xf5, 0xf7: // andn, bzhi, pdep, pext, bextr, shlx
			s.writesReg(in)
		case 0xf0, 0xf1: // crc32, movbe
			if op == 0xf0 || in.Rep {
				s.writesReg(in)
			} else {
				s.writesRM(in)
			}
		case 0xf3: // blsr, blsmsk, blsi
			s.set(in.V, arch.Loc{})
		case 0xf6: // adcx, adox, mulx
			s.writesReg(in)
			if in.Vec {
				s.set(in.V, arch.Loc{})
			}
		}
	case 3:
		switch op {
		case 0xf0: // rorx
			s.writesReg(in)
		case 0x14, 0x15, 0x16, 0x17: // pextr
			s.writesRM(in)
		case 0x61, 0x63: // pcmpestri, pcmpistri
			s.forget(rcx)
		}
	}
}

// afterCall forgets what a callee may change.
func (s state) afterCall() {
	s.Calls = true
	for _, r := range [...]int{rax, rcx, rdx, rsi, rdi, r8, r9, r10, r11} {
		s.Regs[r] = arch.Loc{}
	}
}
