package process

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var (
	ErrBadCFI = errors.New("process: malformed unwind information")
	ErrNoCFI  = errors.New("process: no unwind information here")
)

// The encodings of pointers in .eh_frame (LSB Core, "DWARF Exception Header Encoding").
const (
	encOmit     = 0xff
	encFormat   = 0x0f
	encAbsPtr   = 0x00
	encULEB     = 0x01
	encUData2   = 0x02
	encUData4   = 0x03
	encUData8   = 0x04
	encSLEB     = 0x09
	encSData2   = 0x0a
	encSData4   = 0x0b
	encSData8   = 0x0c
	encBase     = 0x70
	encPCRel    = 0x10
	encDataRel  = 0x30
	encIndirect = 0x80
)

// cursor reads a part of a section. After a read beyond the end, bad is set and all reads return 0.
type cursor struct {
	b    []byte
	pos  int
	addr uint64 // the address of b[0]
	bad  bool
}

func (c *cursor) left() int { return len(c.b) - c.pos }

func (c *cursor) take(n int) []byte {
	if c.bad || n < 0 || n > c.left() {
		c.bad = true
		return nil
	}
	c.pos += n
	return c.b[c.pos-n : c.pos]
}

// number reads a number of n bytes, at most 8.
func (c *cursor) number(n int) uint64 {
	var b [8]byte
	copy(b[:], c.take(n))
	return binary.LittleEndian.Uint64(b[:])
}

func (c *cursor) u8() uint8   { return uint8(c.number(1)) }
func (c *cursor) u16() uint16 { return uint16(c.number(2)) }
func (c *cursor) u32() uint32 { return uint32(c.number(4)) }
func (c *cursor) u64() uint64 { return c.number(8) }

func (c *cursor) uleb() uint64 {
	var v uint64
	for shift := uint(0); shift < 70; shift += 7 {
		b := c.u8()
		v |= uint64(b&0x7f) << shift
		if b&0x80 == 0 {
			return v
		}
	}
	c.bad = true
	return 0
}

func (c *cursor) sleb() int64 {
	var v int64
	for shift := uint(0); shift < 70; shift += 7 {
		b := c.u8()
		v |= int64(b&0x7f) << shift
		if b&0x80 == 0 {
			if b&0x40 != 0 && shift+7 < 64 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
	c.bad = true
	return 0
}

// value reads a number in the format of a pointer encoding.
func (c *cursor) value(enc uint8) uint64 {
	switch enc & encFormat {
	case encAbsPtr, encUData8, encSData8:
		return c.u64()
	case encUData4:
		return uint64(c.u32())
	case encSData4:
		return uint64(int64(int32(c.u32())))
	case encUData2:
		return uint64(c.u16())
	case encSData2:
		return uint64(int64(int16(c.u16())))
	case encULEB:
		return c.uleb()
	case encSLEB:
		return uint64(c.sleb())
	}
	c.bad = true
	return 0
}

// pointer reads an encoded pointer. Pointers that are relative to data are added to data. Indirect pointers are
// refused. They would have to be read from the target's relocated data, and no table of code addresses has them.
func (c *cursor) pointer(enc uint8, data uint64) uint64 {
	at := c.addr + uint64(c.pos)
	v := c.value(enc)
	switch enc &^ encFormat {
	case 0:
	case encPCRel:
		v += at
	case encDataRel:
		v += data
	default:
		c.bad = true
	}
	return v
}

// cie is a common information entry: data that the FDEs of several functions share.
type cie struct {
	codeAlign uint64
	dataAlign int64
	ra        uint64
	fdeEnc    uint8
	augmented bool // its FDEs have augmentation data of their own
	signal    bool // 'S': a frame of a signal handler's trampoline
	program   []byte
}

// fde is a frame description entry: the rules of one function.
type fde struct {
	cie
	start, size uint64
	program     []byte
}

// entry returns the CIE or FDE at an offset of the section, without its length (LSB Core, "The .eh_frame section").
// kind is the field after the length: 0 in a CIE, the distance back to its CIE in an FDE. next is the offset of the
// next entry, 0 at the end.
func entry(section []byte, addr uint64, off uint64) (c cursor, kind uint64, kindAt, next uint64) {
	if off >= uint64(len(section)) {
		return cursor{bad: true}, 0, 0, 0
	}
	c = cursor{b: section[off:], addr: addr + off}
	n := uint64(c.u32())
	if n == 0xffffffff {
		n = c.u64()
	}
	if c.bad || n < 4 || n > uint64(c.left()) {
		return cursor{bad: true}, 0, 0, 0 // also the zero at the end of the section
	}
	next = off + uint64(c.pos) + n
	kindAt = off + uint64(c.pos)
	c.b = c.b[:uint64(c.pos)+n]
	// In .eh_frame this field has 4 bytes, even after a 64-bit length.
	return c, uint64(c.u32()), kindAt, next
}

func (t *cfiTable) readCIE(off uint64) (cie, error) {
	c, id, _, _ := entry(t.frames, t.framesAddr, off)
	version := c.u8()
	if c.bad || id != 0 || version != 1 && version != 3 {
		return cie{}, fmt.Errorf("%w: no CIE at %#x", ErrBadCFI, off)
	}
	aug := cstring(c.b, uint32(c.pos))
	if c.take(len(aug) + 1); len(aug) > 8 {
		return cie{}, fmt.Errorf("%w: augmentation %q", ErrBadCFI, aug)
	}
	e := cie{fdeEnc: encAbsPtr, codeAlign: c.uleb(), dataAlign: c.sleb()}
	if version == 1 {
		e.ra = uint64(c.u8())
	} else {
		e.ra = c.uleb()
	}
	if err := t.readAugmentation(&e, aug, &c); err != nil {
		return e, err
	}
	e.program = c.take(c.left())
	if c.bad || e.ra >= maxRegs || e.codeAlign > 1<<10 || e.dataAlign > 1<<10 || e.dataAlign < -1<<10 {
		return e, fmt.Errorf("%w: CIE at %#x", ErrBadCFI, off)
	}
	return e, nil
}

func (t *cfiTable) readAugmentation(e *cie, aug []byte, c *cursor) error {
	if len(aug) == 0 {
		return nil
	}
	if aug[0] != 'z' {
		return fmt.Errorf("%w: augmentation %q", ErrBadCFI, aug)
	}
	e.augmented = true
	n := c.uleb()
	if n > uint64(c.left()) {
		return fmt.Errorf("%w: augmentation of %d bytes", ErrBadCFI, n)
	}
	data := cursor{b: c.b[:uint64(c.pos)+n], pos: c.pos, addr: c.addr}
	c.take(int(n))
	for _, letter := range aug[1:] {
		switch letter {
		case 'R': // the encoding of addresses in FDEs
			e.fdeEnc = data.u8()
		case 'L': // the encoding of the address of exception tables
			data.u8()
		case 'P': // personality routine: encoding and pointer
			data.value(data.u8())
		case 'S':
			e.signal = true
		case 'B', 'G': // arm64: signed with key B, tagged stack
		default:
			return fmt.Errorf("%w: augmentation %q", ErrBadCFI, aug)
		}
	}
	if data.bad {
		return fmt.Errorf("%w: augmentation data", ErrBadCFI)
	}
	return nil
}

// readFDE reads the FDE at an offset. isFDE is false for a CIE; next is 0 at the end.
func (t *cfiTable) readFDE(off uint64) (f fde, isFDE bool, next uint64, err error) {
	c, back, at, next := entry(t.frames, t.framesAddr, off)
	if c.bad {
		return f, false, 0, ErrNoCFI
	}
	if back == 0 {
		return f, false, next, nil
	}
	if back > at {
		return f, true, next, fmt.Errorf("%w: FDE at %#x", ErrBadCFI, off)
	}
	if f.cie, err = t.readCIE(at - back); err != nil {
		return f, true, next, err
	}
	f.start = c.pointer(f.fdeEnc, 0)
	f.size = c.value(f.fdeEnc & encFormat)
	if f.augmented {
		n := c.uleb()
		c.take(int(min(n, 1<<30)))
	}
	f.program = c.take(c.left())
	if c.bad {
		return f, true, next, fmt.Errorf("%w: FDE at %#x", ErrBadCFI, off)
	}
	return f, true, next, nil
}
