package process

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"sort"

	"goprof/arch"
)

const (
	maxRegs = arch.MaxRegs
	maxFDEs = 4 << 20 // of the index that goprof builds if the file has none; Chromium has 500,000
)

// cfiTable is the unwind information of one image: its .eh_frame section and a sorted index. All addresses are the
// file's own. A cfiTable does not change after it was read.
type cfiTable struct {
	frames     []byte // .eh_frame
	framesAddr uint64

	// pairs is the linker's index, in .eh_frame_hdr: pairs of 4-byte numbers, a function's start and its FDE, both counted
	// from hdrAddr.
	pairs   []byte
	hdrAddr uint64
	index   []fdeRef // goprof's own index, if the linker made none
}

type fdeRef struct {
	start uint64
	off   uint64
}

// readCFI reads the unwind information of an image. It copies the sections and does not map them: if a mapped file
// shrinks, reading the mapping kills goprof.
func readCFI(f *elfFile) (*cfiTable, error) {
	t := &cfiTable{}
	hdr := f.prog(elf.PT_GNU_EH_FRAME)
	if hdr != nil {
		if err := t.readHeader(f, hdr); err == nil {
			return t, nil
		}
	}
	s := f.section(".eh_frame")
	if s == nil {
		if t.frames != nil {
			return t, t.buildIndex()
		}
		return nil, ErrNoCFI
	}
	b, err := f.data(s)
	if err != nil {
		return nil, err
	}
	t.frames, t.framesAddr = b, s.Addr
	return t, t.buildIndex()
}

// readHeader reads .eh_frame_hdr (LSB Core, "The .eh_frame_hdr section") and .eh_frame, to which it points.
func (t *cfiTable) readHeader(f *elfFile, p *elf.Prog64) error {
	off, left, ok := f.offset(p.Vaddr)
	if !ok {
		return fmt.Errorf("%w: .eh_frame_hdr is not loaded", ErrBadCFI)
	}
	b, err := f.bytes(off, min(left, p.Filesz))
	if err != nil {
		return err
	}
	c := cursor{b: b, addr: p.Vaddr}
	version, ptrEnc, countEnc, tableEnc := c.u8(), c.u8(), c.u8(), c.u8()
	frames := c.pointer(ptrEnc, p.Vaddr)
	if c.bad || version != 1 {
		return fmt.Errorf("%w: .eh_frame_hdr version %d", ErrBadCFI, version)
	}
	if err := t.readFrames(f, frames); err != nil {
		return err
	}
	if countEnc == encOmit || tableEnc != encDataRel|encSData4 {
		return fmt.Errorf("%w: no search table of the usual kind (%#x)", ErrBadCFI, tableEnc)
	}
	n := c.pointer(countEnc, p.Vaddr)
	if c.bad || n == 0 || n > uint64(c.left())/8 {
		return fmt.Errorf("%w: search table of %d entries", ErrBadCFI, n)
	}
	t.hdrAddr, t.pairs = p.Vaddr, c.take(int(n)*8)
	return nil
}

// readFrames reads .eh_frame. The section header has its size. Without section headers, it is read up to the end of the
// segment.
func (t *cfiTable) readFrames(f *elfFile, addr uint64) error {
	off, left, ok := f.offset(addr)
	if !ok {
		return fmt.Errorf("%w: .eh_frame is not loaded", ErrBadCFI)
	}
	if s := f.section(".eh_frame"); s != nil && s.Addr == addr {
		left = min(left, s.Size)
	}
	b, err := f.bytes(off, left)
	if err != nil {
		return err
	}
	t.frames, t.framesAddr = b, addr
	return nil
}

// buildIndex lists all FDEs.
func (t *cfiTable) buildIndex() error {
	for off := uint64(0); len(t.index) < maxFDEs; {
		f, isFDE, next, err := t.readFDE(off)
		if next == 0 {
			break
		}
		if isFDE && err == nil && f.size > 0 {
			t.index = append(t.index, fdeRef{f.start, off})
		}
		off = next
	}
	sort.Slice(t.index, func(i, j int) bool { return t.index[i].start < t.index[j].start })
	if len(t.index) == 0 {
		return ErrNoCFI
	}
	return nil
}

// find returns the FDE whose function holds addr.
func (t *cfiTable) find(addr uint64) (fde, error) {
	off, ok := t.search(addr)
	if !ok {
		return fde{}, ErrNoCFI
	}
	f, isFDE, _, err := t.readFDE(off)
	if err != nil {
		return fde{}, err
	}
	if !isFDE || addr-f.start >= f.size {
		return fde{}, ErrNoCFI
	}
	return f, nil
}

// search returns the offset of the last FDE that begins at or before addr.
func (t *cfiTable) search(addr uint64) (uint64, bool) {
	if t.pairs == nil {
		i := sort.Search(len(t.index), func(i int) bool { return t.index[i].start > addr })
		if i == 0 {
			return 0, false
		}
		return t.index[i-1].off, true
	}
	start := func(i int) int32 { return int32(binary.LittleEndian.Uint32(t.pairs[i*8:])) }
	rel := int64(addr - t.hdrAddr)
	i := sort.Search(len(t.pairs)/8, func(i int) bool { return int64(start(i)) > rel })
	if i == 0 {
		return 0, false
	}
	at := t.hdrAddr + uint64(int64(int32(binary.LittleEndian.Uint32(t.pairs[(i-1)*8+4:]))))
	if at < t.framesAddr {
		return 0, false
	}
	return at - t.framesAddr, true
}

// row returns the rules at addr. m is scratch memory.
func (t *cfiTable) row(addr uint64, m *cfiMachine) (*Row, error) {
	f, err := t.find(addr)
	if err != nil {
		return nil, err
	}
	return m.run(&f, addr)
}
