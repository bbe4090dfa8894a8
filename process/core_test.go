package process

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime/metrics"
	"slices"
	"testing"

	"goprof/arch"
)

// coreFixture makes core files for tests.
type coreFixture struct {
	progs []elf.Prog64
	body  []byte
	notes []byte
	xnum  bool
}

// load adds a segment of size bytes, of which the file has data.
func (f *coreFixture) load(addr, size uint64, flags elf.ProgFlag, data []byte) {
	f.progs = append(f.progs, elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(flags), Vaddr: addr, Memsz: size,
		Off: uint64(len(f.body)), Filesz: uint64(len(data))})
	f.body = append(f.body, data...)
}

func (f *coreFixture) note(owner string, kind uint32, desc []byte) {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(owner)+1))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(desc)))
	b = binary.LittleEndian.AppendUint32(b, kind)
	b = append(b, owner...)
	b = append(b, make([]byte, 4-len(owner)%4)...)
	b = append(b, desc...)
	f.notes = append(f.notes, append(b, make([]byte, -len(desc)&3)...)...)
}

func (f *coreFixture) thread(tid uint32, signal uint16, sp, pc uint64) {
	b := make([]byte, 336)
	binary.LittleEndian.PutUint16(b[arch.CoreSignal:], signal)
	binary.LittleEndian.PutUint32(b[arch.CoreThread:], tid)
	binary.LittleEndian.PutUint64(b[arch.CoreRegs+16*8:], pc)
	binary.LittleEndian.PutUint64(b[arch.CoreRegs+19*8:], sp)
	f.note("CORE", ntPRStatus, b)
}

// files adds NT_FILE, with pages as the unit of offsets.
func (f *coreFixture) files(parts ...mappedPart) {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(parts)))
	b = binary.LittleEndian.AppendUint64(b, 4096)
	var names []byte
	for _, p := range parts {
		for _, v := range []uint64{p.start, p.end, p.offset / 4096} {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		names = append(append(names, p.path...), 0)
	}
	f.note("CORE", ntFile, append(b, names...))
}

func (f *coreFixture) bytes() []byte {
	progs := append([]elf.Prog64{{Type: uint32(elf.PT_NOTE)}}, f.progs...)
	h := elf.Header64{Type: uint16(elf.ET_CORE), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: 64, Phentsize: 56,
		Phnum: uint16(len(progs)), Ehsize: 64, Shentsize: 64}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	at := uint64(64 + 56*len(progs))
	if f.xnum {
		h.Phnum, h.Shoff, h.Shnum = pnXNum, at, 1
		at += 64
	}
	progs[0].Off, progs[0].Filesz = at, uint64(len(f.notes))
	at += uint64(len(f.notes))
	for i := range progs[1:] {
		progs[i+1].Off += at
	}
	var b bytes.Buffer
	binary.Write(&b, binary.LittleEndian, h)
	binary.Write(&b, binary.LittleEndian, progs)
	if f.xnum {
		binary.Write(&b, binary.LittleEndian, elf.Section64{Info: uint32(len(progs))})
	}
	b.Write(f.notes)
	b.Write(f.body)
	return b.Bytes()
}

func (f *coreFixture) open(t *testing.T) *Core { return f.openBelow(t, "") }

func (f *coreFixture) openBelow(t *testing.T, root string) *Core {
	t.Helper()
	b := f.bytes()
	c, err := OpenCore(bytes.NewReader(b), int64(len(b)), CoreOptions{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestCoreOfManyNotes: segments of notes may overlap. goprof does not read the same bytes for each of these segments.
func TestCoreOfManyNotes(t *testing.T) {
	f := &coreFixture{}
	f.thread(7, 11, 0x10010, 0x20000)
	for range 100 {
		f.progs = append(f.progs, elf.Prog64{Type: uint32(elf.PT_NOTE), Off: -uint64(len(f.notes)),
			Filesz: uint64(len(f.notes))})
	}
	if n := len(f.open(t).Threads()); n != maxNoteSegments {
		t.Errorf("%d threads", n)
	}
}

func page(fill byte) []byte { return bytes.Repeat([]byte{fill}, 4096) }

func TestCoreMemory(t *testing.T) {
	f := &coreFixture{}
	f.thread(7, 11, 0x10010, 0x20000)
	f.load(0x10000, 0x2000, elf.PF_R|elf.PF_W, append(page(1), page(2)...))
	f.load(0x11000, 0x2000, elf.PF_R, page(9)) // overlaps the previous one, which counts
	f.load(0x12000, 0x1000, elf.PF_R, page(3))
	f.load(0x20000, 0x3000, elf.PF_R|elf.PF_X, page(4)) // two of its pages were not written
	f.load(^uint64(0)-10, 0x1000, elf.PF_R, page(5))    // it wraps around
	c := f.open(t)
	for name, r := range map[string]struct {
		addr uint64
		n    int
		want []byte // nil: a fault
	}{
		"inside":             {0x10ff8, 8, bytes.Repeat([]byte{1}, 8)},
		"across segments":    {0x11fff, 2, []byte{2, 3}},
		"the overlapped":     {0x11000, 1, []byte{2}},
		"not written":        {0x21000, 1, nil},
		"into the unwritten": {0x20fff, 2, nil},
		"nowhere":            {0x5000, 1, nil},
		"wraps":              {^uint64(0) - 4, 3, nil},
		"round the end":      {^uint64(0), 2, nil},
		"before a segment":   {0xffff, 2, nil},
	} {
		b := make([]byte, r.n)
		err := c.Read(r.addr, b)
		if r.want == nil && !errors.Is(err, ErrFault) || r.want != nil && (err != nil || !bytes.Equal(b, r.want)) {
			t.Errorf("%s: %v %v", name, b, err)
		}
	}
	if n := c.ReadUpTo(0x12ff0, make([]byte, 64)); n != 16 {
		t.Errorf("ReadUpTo: %d", n)
	}
}

func TestCoreThreads(t *testing.T) {
	for name, xnum := range map[string]bool{"few": false, "many segments": true} {
		t.Run(name, func(t *testing.T) {
			f := &coreFixture{xnum: xnum}
			f.thread(7, 11, 0x10010, 0x20000)
			info := make([]byte, 128)
			binary.LittleEndian.PutUint32(info, 11)
			binary.LittleEndian.PutUint32(info[8:], 1)
			binary.LittleEndian.PutUint64(info[16:], 0xdead)
			f.note("CORE", ntSigInfo, info)
			f.note("LINUX", 0x202, make([]byte, 2700)) // xstate, which goprof does not need
			f.thread(8, 0, 0x11010, 0x20004)
			f.load(0x10000, 0x2000, elf.PF_R|elf.PF_W, append(page(1), page(2)...))
			c := f.open(t)
			threads := c.Threads()
			if len(threads) != 2 || threads[0].TID != 7 || threads[1].TID != 8 || threads[0].Signal != 11 ||
				threads[1].Regs[c.CPU().SP] != 0x11010 || threads[1].Regs[c.CPU().PC] != 0x20004 {
				t.Errorf("threads %+v", threads)
			}
			if i := threads[0].Info; i == nil || *i != (SigInfo{Signal: 11, Code: 1, Addr: 0xdead}) || threads[1].Info != nil {
				t.Errorf("signal %+v", i)
			}
		})
	}
}

// TestCoreMaps: a part of a file is a mapping, even if it is in no segment, or only a part of a segment.
func TestCoreMaps(t *testing.T) {
	f := &coreFixture{}
	f.thread(7, 0, 0x10010, 0x20000)
	f.load(0x10000, 0x4000, elf.PF_R, page(1))
	f.load(0x20000, 0x1000, elf.PF_R|elf.PF_X, nil)
	f.files(mappedPart{0x8000, 0x9000, 0, "/a"}, mappedPart{0x11000, 0x12000, 4096, "/a"},
		mappedPart{0x13000, 0x15000, 0, "/b (deleted)"}, mappedPart{0x20000, 0x21000, 0, "/c"},
		mappedPart{0x30000, 0x31000, 0, "/c"})
	type row struct {
		start, end, offset uint64
		path               string
	}
	var got []row
	for _, m := range f.open(t).Mappings() {
		got = append(got, row{m.Start, m.End, m.Offset, m.Path})
	}
	want := []row{{0x8000, 0x9000, 0, "/a"}, {0x10000, 0x11000, 0, ""}, {0x11000, 0x12000, 4096, "/a"},
		{0x12000, 0x13000, 0, ""}, {0x13000, 0x14000, 0, "/b"}, {0x14000, 0x15000, 4096, "/b"},
		{0x20000, 0x21000, 0, "/c"}, {0x30000, 0x31000, 0, "/c"}}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestCutCore: goprof reads the remaining part of a core, and reports that the rest is missing.
func TestCutCore(t *testing.T) {
	f := &coreFixture{}
	f.thread(7, 11, 0x10010, 0x20000)
	f.load(0x10000, 0x2000, elf.PF_R, append(page(1), page(2)...))
	b := f.bytes()
	c, err := OpenCore(bytes.NewReader(b[:len(b)-4096-100]), int64(len(b)-4096-100), CoreOptions{})
	if err != nil || c.Cut() != 4196 {
		t.Fatal(c.Cut(), err)
	}
	var one [1]byte
	if c.Read(0x10000+4096-101, one[:]) != nil || one[0] != 1 || c.Read(0x10000+4096-100, one[:]) != ErrFault {
		t.Error("the wrong part is missing")
	}
	for n := range b {
		if c, err := OpenCore(bytes.NewReader(b[:n]), int64(n), CoreOptions{}); err == nil {
			c.Close()
		} else if !errors.Is(err, ErrNotCore) {
			t.Fatal(n, err)
		}
	}
}

func FuzzCore(f *testing.F) {
	c := &coreFixture{}
	c.thread(7, 11, 0x10010, 0x20000)
	c.note("CORE", ntSigInfo, make([]byte, 128))
	c.note("CORE", ntPRPSInfo, make([]byte, 136))
	c.note("CORE", ntAuxv, binary.LittleEndian.AppendUint64([]byte{33, 0, 0, 0, 0, 0, 0, 0}, 0x20000))
	c.files(mappedPart{0x10000, 0x11000, 0, "/a"}, mappedPart{0x20000, 0x22000, 0, "/b"})
	c.load(0x10000, 0x2000, elf.PF_R, page(1))
	c.load(0x20000, 0x2000, elf.PF_R|elf.PF_X, []byte(elf.ELFMAG))
	f.Add(c.bytes())
	c.xnum = true
	f.Add(c.bytes())
	for _, name := range []string{"/libjvm.so", ""} {
		f.Add(coreOfVDSO(f, name))
	}
	root := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		defer allocatesAtMost(t, mostOfSmallCore)()
		c, err := OpenCore(bytes.NewReader(b), int64(len(b)), CoreOptions{Root: root})
		if err != nil {
			return
		}
		defer c.Close()
		last := uint64(0)
		for _, m := range c.Mappings() {
			if m.Start < last || m.End <= m.Start {
				t.Fatalf("mappings out of order: %+v", m)
			}
			last = m.End
		}
		c.Image("libjvm.so")
		c.Global("libjvm.so", "gHotSpotVMStructs")
		var buf [300]byte
		for _, th := range c.Threads() {
			c.Code(th.Regs[c.CPU().PC], true)
			c.Read(th.Regs[c.CPU().SP], buf[:])
			c.ReadUpTo(th.Regs[c.CPU().SP], buf[:])
		}
	})
}

// mostOfSmallCore bounds the memory that goprof may allocate for a core of less than a megabyte, whatever the core's
// headers say.
const mostOfSmallCore = 16 << 20

// allocatesAtMost returns a function that fails the test if more bytes have been allocated since.
func allocatesAtMost(t *testing.T, most uint64) func() {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	return func() {
		metrics.Read(sample)
		if n := sample[0].Value.Uint64() - before; n > most {
			t.Errorf("%d bytes were allocated", n)
		}
	}
}

// coreOfVDSO returns a core of this process's vdso, which is a whole library of 8 KB. If name is not empty, the vdso is
// a mapped file with that name.
func coreOfVDSO(f *testing.F, name string) []byte {
	c := &coreFixture{}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return c.bytes() // this system has no /proc
	}
	defer maps.Close()
	list, _ := ParseMaps(maps)
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		f.Fatal(err)
	}
	defer mem.Close()
	for _, m := range list {
		if m.Path != vdsoName {
			continue
		}
		b := make([]byte, m.End-m.Start)
		if _, err := mem.ReadAt(b, int64(m.Start)); err != nil {
			f.Fatal(err)
		}
		const at = 0x20000
		c.thread(7, 11, 0x10010, at+uint64(len(b))/2)
		c.thread(8, 0, 0x10110, at+uint64(len(b))*3/4)
		c.load(0x10000, 0x2000, elf.PF_R, page(1))
		c.load(at, uint64(len(b)), elf.PF_R|elf.PF_X, b)
		if name != "" {
			c.files(mappedPart{at, at + uint64(len(b)), 0, name})
		} else {
			c.note("CORE", ntAuxv, binary.LittleEndian.AppendUint64([]byte{33, 0, 0, 0, 0, 0, 0, 0}, at))
		}
	}
	return c.bytes()
}

// sparse is a file with some bytes at its beginning, and zeros up to its end.
type sparse struct {
	begin      []byte
	size, read int64
}

func (s *sparse) ReadAt(b []byte, off int64) (int, error) {
	n := int(min(int64(len(b)), max(s.size-off, 0)))
	clear(b[:n])
	if off < int64(len(s.begin)) {
		copy(b[:n], s.begin[off:])
	}
	if s.read += int64(n); n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// TestHugeCore: goprof reads only what it needs of a core of 100 GB.
func TestHugeCore(t *testing.T) {
	const huge = 100 << 30
	f := &coreFixture{}
	f.thread(7, 11, 0x10010, 0x20000)
	f.load(0x10000, huge, elf.PF_R|elf.PF_W, nil)
	b := f.bytes()
	binary.LittleEndian.PutUint64(b[64+56+32:], huge) // Filesz of the second program header
	file := &sparse{begin: b, size: int64(len(b)) + huge}
	c, err := OpenCore(file, file.size, CoreOptions{})
	if err != nil || c.Cut() != 0 || file.read > 1<<20 {
		t.Fatal(err, c.Cut(), file.read)
	}
	defer c.Close()
	for i := range uint64(1000) {
		var word [8]byte
		if err := c.Read(0x10000+i*(huge/1000), word[:]); err != nil {
			t.Fatal(i, err)
		}
	}
	if file.read > 1001*2*cacheUnit+1<<20 {
		t.Errorf("%d MB were read", file.read>>20)
	}
}
