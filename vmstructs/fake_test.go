package vmstructs

import (
	"encoding/binary"
	"errors"

	"goprof/arch"
	"goprof/arch/amd64"
	"goprof/process"
)

// fakeTarget is a target of literal bytes: only the pages into which a test puts bytes are mapped. All other pages
// fault.
type fakeTarget struct {
	pages   map[uint64][]byte
	symbols map[string]uint64
	images  map[string]process.Image
	reads   int
	onRead  func(addr uint64) // called before each range
}

func newFake() *fakeTarget {
	return &fakeTarget{pages: map[uint64][]byte{}, symbols: map[string]uint64{}, images: map[string]process.Image{}}
}

func (f *fakeTarget) Read(addr uint64, p []byte) error {
	f.reads++
	if f.onRead != nil {
		f.onRead(addr)
	}
	for len(p) > 0 {
		page, ok := f.pages[addr/pageSize]
		if !ok {
			return process.ErrFault
		}
		n := copy(p, page[addr%pageSize:])
		p, addr = p[n:], addr+uint64(n)
	}
	return nil
}

func (f *fakeTarget) ReadMany(rs []process.Range) {
	for i := range rs {
		rs[i].OK = f.Read(rs[i].Addr, rs[i].Buf) == nil
	}
}

func (f *fakeTarget) CPU() *arch.CPU                          { return amd64.CPU }
func (f *fakeTarget) Code(uint64, bool) (process.Code, bool)  { return process.Code{}, false }
func (f *fakeTarget) Generation() uint64                      { return 0 }
func (f *fakeTarget) Image(name string) (process.Image, bool) { i, ok := f.images[name]; return i, ok }
func (f *fakeTarget) Global(_, symbol string) (uint64, error) {
	if a, ok := f.symbols[symbol]; ok {
		return a, nil
	}
	return 0, errors.New("no such symbol")
}

// put writes bytes, and maps their pages.
func (f *fakeTarget) put(addr uint64, b ...byte) {
	for i, v := range b {
		a := addr + uint64(i)
		page := f.pages[a/pageSize]
		if page == nil {
			page = make([]byte, pageSize)
			f.pages[a/pageSize] = page
		}
		page[a%pageSize] = v
	}
}

func (f *fakeTarget) put64(addr, v uint64) { f.put(addr, binary.LittleEndian.AppendUint64(nil, v)...) }
func (f *fakeTarget) put32(addr uint64, v uint32) {
	f.put(addr, binary.LittleEndian.AppendUint32(nil, v)...)
}
func (f *fakeTarget) put16(addr uint64, v uint16) {
	f.put(addr, binary.LittleEndian.AppendUint16(nil, v)...)
}
func (f *fakeTarget) putString(addr uint64, s string) { f.put(addr, append([]byte(s), 0)...) }

// putSized writes a field that has different widths in different releases.
func (f *fakeTarget) putSized(addr uint64, s sized, v uint64) {
	f.put(addr+uint64(s.offset), binary.LittleEndian.AppendUint64(nil, v)[:s.width]...)
}
