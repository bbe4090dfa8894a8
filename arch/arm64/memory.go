package arm64

// memory decodes loads and stores: Arm ARM, C4.1.94.
func (in *inst) memory(w uint32) {
	switch {
	case field(w, 27, 3) == 5: // pairs
		in.pair(w)
	case field(w, 27, 3) == 7:
		in.single(w)
	case field(w, 24, 6) == 0x18, field(w, 24, 6) == 0x1c:
		in.literal(w)
	case field(w, 24, 6) == 0x08:
		in.exclusive(w)
	case field(w, 24, 6) == 0x19:
		in.ordered(w)
	case field(w, 24, 6) == 0x0c && field(w, 31, 1) == 0, field(w, 24, 6) == 0x0d && field(w, 31, 1) == 0:
		in.structure(w)
	case field(w, 24, 6) == 0x1d: // cpy, set: they move all three of their registers
		in.writes(in.Rd, in.Rn, in.Rm)
	default:
		in.Op = opBad
	}
}

// access sets the opcode of a load or a store.
func (in *inst) access(load bool) {
	in.Op = opStore
	if load {
		in.Op = opLoad
	}
}

// vectorAccess makes the instruction a load or a store of registers that are not general ones, of at most that many
// bytes.
func (in *inst) vectorAccess(load bool, bytes int) {
	in.access(load)
	in.Rd, in.Pair, in.Narrow, in.Bytes = zr, false, true, uint8(bytes)
}

// pair decodes ldp, stp, ldnp, stnp, ldpsw and stgp.
func (in *inst) pair(w uint32) {
	opc, load := field(w, 30, 2), field(w, 22, 1) == 1
	size := 2 // log2
	in.Rd, in.Rt2, in.Pair = orZR(in.Rd), orZR(uint8(field(w, 10, 5))), true
	if field(w, 26, 1) == 1 {
		if opc == 3 {
			in.Op = opBad
			return
		}
		size += int(opc)
		in.vectorAccess(load, 2<<size)
	} else {
		in.access(load)
		switch {
		case opc == 3:
			in.Op = opBad
			return
		case opc == 2:
			size = 3
		case opc == 1 && !load: // stgp
			size, in.Narrow = 4, true
		default:
			in.Narrow = true
		}
	}
	in.Imm = sext(w, 15, 7) << size
	in.Index = [...]indexing{indexOffset, indexPost, indexOffset, indexPre}[field(w, 23, 2)]
}

// single decodes ldr, str and their variants.
func (in *inst) single(w uint32) {
	size, opc := field(w, 30, 2), field(w, 22, 2)
	isVector := field(w, 26, 1) == 1
	scale := int(size)
	if isVector {
		scale = int(size | opc>>1<<2)
		if scale > 4 {
			in.Op = opBad
			return
		}
	}
	if field(w, 24, 1) == 0 && field(w, 21, 1) == 1 && field(w, 10, 2) != 2 {
		in.atomic(w)
		return
	}
	in.Rd, in.Narrow = orZR(in.Rd), size != 3
	switch {
	case isVector:
		in.vectorAccess(opc&1 == 1, 1<<scale)
	case size == 3 && opc == 2: // prfm
		in.writes()
		return
	default:
		in.access(opc != 0)
	}
	switch {
	case field(w, 24, 1) == 1:
		in.Imm = int64(field(w, 10, 12)) << scale
	case field(w, 21, 1) == 1: // a register as offset
		in.Index = indexNoAddr
	default:
		in.Imm = sext(w, 12, 9)
		in.Index = [...]indexing{indexOffset, indexPost, indexOffset, indexPre}[field(w, 10, 2)]
	}
}

// atomic decodes ldadd, swp and cas of one register, and ldraa.
func (in *inst) atomic(w uint32) {
	if field(w, 26, 1) == 1 {
		in.Op = opBad
		return
	}
	if field(w, 10, 1) == 1 { // ldraa, ldrab
		if field(w, 30, 2) != 3 {
			in.Op = opBad
			return
		}
		in.access(true)
		in.Rd = orZR(in.Rd)
		in.Imm = (sext(w, 22, 1)<<9 | int64(field(w, 12, 9))) * 8
		if field(w, 11, 1) == 1 {
			in.Index = indexPre
		}
		return
	}
	in.Index, in.Narrow = indexNoAddr, true
	switch op := field(w, 12, 4); {
	case op == 9, op == 10, op == 11, op == 13: // st64b, st64bv, ld64b
		if op == 13 {
			for r := in.Rd; r < in.Rd+8 && r < 31; r++ {
				in.writes(r)
			}
			return
		}
		in.writes(in.Rm)
	default:
		in.Rd = orZR(in.Rd)
		in.access(true)
	}
}

// literal decodes ldr of a constant beside the code.
func (in *inst) literal(w uint32) {
	switch {
	case field(w, 26, 1) == 1 || field(w, 30, 2) == 3: // vectors, prfm
		in.writes()
	default:
		in.Op, in.Rd = opAddr, orZR(in.Rd)
	}
}

// exclusive decodes ldxr, stxr, ldar, stlr, cas and casp.
func (in *inst) exclusive(w uint32) {
	o2, load, o1 := field(w, 23, 1), field(w, 22, 1) == 1, field(w, 21, 1)
	pair := uint8(field(w, 10, 5))
	switch {
	case o2 == 1 && o1 == 1: // cas
		in.writes(in.Rm)
	case o2 == 1 && !load: // stlr
		in.writes()
		in.Rd, in.Index = orZR(in.Rd), indexOffset
		in.Op, in.Narrow = opStore, field(w, 30, 2) != 3
	case o2 == 1: // ldar
		in.writes(in.Rd)
	case o1 == 1 && field(w, 31, 1) == 0: // casp
		in.writes(in.Rm, in.Rm|1)
	case load && o1 == 1: // ldxp
		in.writes(in.Rd, pair)
	case load:
		in.writes(in.Rd)
	default: // stxr, stxp
		in.writes(in.Rm)
	}
}

// ordered decodes ldapur, stlur, and the instructions for memory tags.
func (in *inst) ordered(w uint32) {
	switch {
	case field(w, 21, 1) == 0 && field(w, 10, 2) == 0: // ldapur, stlur
		size, opc := field(w, 30, 2), field(w, 22, 2)
		if size == 3 && opc > 1 {
			in.Op = opBad
			return
		}
		in.Rd, in.Narrow, in.Imm = orZR(in.Rd), size != 3, sext(w, 12, 9)
		in.access(opc != 0)
	case field(w, 30, 2) == 3 && field(w, 21, 1) == 1: // stg, ldg
		if field(w, 10, 2) == 0 {
			in.writes(in.Rd)
			return
		}
		in.vectorAccess(false, 32)
		in.Imm = sext(w, 12, 9) * 16
		in.Index = [...]indexing{indexOffset, indexPost, indexOffset, indexPre}[field(w, 10, 2)]
	case field(w, 30, 2) != 3 && field(w, 21, 1) == 0 && field(w, 10, 2) == 1: // cpyf, cpy, set
		in.writes(in.Rd, in.Rn, in.Rm)
	default:
		in.Op = opBad
	}
}

// structure decodes ld1 to ld4 and st1 to st4.
func (in *inst) structure(w uint32) {
	rm := in.Rm
	in.vectorAccess(field(w, 22, 1) == 1, 64)
	if field(w, 23, 1) == 0 {
		return
	}
	if in.Index = indexPostReg; rm != 31 {
		return
	}
	in.Index = indexPost
	if field(w, 24, 1) == 0 { // whole registers
		n := map[uint32]int64{0: 4, 2: 4, 4: 3, 6: 3, 7: 1, 8: 2, 10: 2}[field(w, 12, 4)]
		if in.Imm = n << (3 + field(w, 30, 1)); n == 0 {
			in.Op = opBad
		}
		return
	}
	n := int64(field(w, 13, 1)*2+field(w, 21, 1)) + 1
	scale := field(w, 14, 2)
	switch {
	case scale == 3: // loads one element to all lanes
		scale = field(w, 10, 2)
	case scale == 2 && field(w, 10, 1) == 1:
		scale = 3
	}
	in.Imm = n << scale
}
