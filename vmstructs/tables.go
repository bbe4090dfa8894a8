package vmstructs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"goprof/process"
)

// Limits on the exported tables. JDK 8 to 27 have at most 840 fields, 800 types and 600 constants, with names of at
// most 110 bytes.
const (
	maxEntries   = 8192
	maxStride    = 128
	maxTextPage  = 2048 // pages that hold names
	maxText      = 1024 // bytes of one name
	maxUsualText = 256  // a name that starts this close to the end of a page may continue in the next page
)

// fieldName names a field as HotSpot's table does: by the C++ type and the field.
type fieldName struct{ typ, field string }

// tableField is one entry of gHotSpotVMStructs (runtime/vmStructs.hpp, VMStructEntry).
type tableField struct {
	typ    string // C++ type of the field, may be empty
	offset uint64 // of an instance field: the offset in the object
	addr   uint64 // of a static field: the address of the value
	static bool
}

// tables are the four arrays that HotSpot exports for debuggers (runtime/vmStructs.hpp), from live memory. In the file
// of libjvm.so most offsets are zero: C++ initialisers set them.
type tables struct {
	fields map[fieldName]tableField
	sizes  map[string]uint64 // gHotSpotVMTypes: size of each type
	ints   map[string]int32
	longs  map[string]uint64
}

// tableShape has the names of the variables with which HotSpot describes the layout of each array.
type tableShape struct {
	array   string   // variable that points to the first entry
	stride  string   // variable with the size of an entry
	offsets []string // variables with the offsets of the members, the name first
}

var tableShapes = [4]tableShape{
	{"gHotSpotVMStructs", "gHotSpotVMStructEntryArrayStride", []string{
		"gHotSpotVMStructEntryTypeNameOffset", "gHotSpotVMStructEntryFieldNameOffset",
		"gHotSpotVMStructEntryTypeStringOffset", "gHotSpotVMStructEntryIsStaticOffset",
		"gHotSpotVMStructEntryOffsetOffset", "gHotSpotVMStructEntryAddressOffset"}},
	{"gHotSpotVMTypes", "gHotSpotVMTypeEntryArrayStride", []string{
		"gHotSpotVMTypeEntryTypeNameOffset", "gHotSpotVMTypeEntrySizeOffset"}},
	{"gHotSpotVMIntConstants", "gHotSpotVMIntConstantEntryArrayStride", []string{
		"gHotSpotVMIntConstantEntryNameOffset", "gHotSpotVMIntConstantEntryValueOffset"}},
	{"gHotSpotVMLongConstants", "gHotSpotVMLongConstantEntryArrayStride", []string{
		"gHotSpotVMLongConstantEntryNameOffset", "gHotSpotVMLongConstantEntryValueOffset"}},
}

// rawTable has the bytes of one array, and the offsets of an entry's members.
type rawTable struct {
	bytes  []byte
	stride int
	member []int
}

func (r *rawTable) len() int { return len(r.bytes) / r.stride }

func (r *rawTable) u64(i, member int) uint64 {
	return binary.LittleEndian.Uint64(r.bytes[i*r.stride+r.member[member]:])
}

func (r *rawTable) u32(i, member int) uint32 {
	return binary.LittleEndian.Uint32(r.bytes[i*r.stride+r.member[member]:])
}

// readTables reads all four arrays of one image. lookup finds the image's symbols.
func readTables(m process.Memory, lookup func(symbol string) (uint64, error)) (*tables, error) {
	var raw [4]rawTable
	var text textPages
	for i := range tableShapes {
		r, err := readRawTable(m, lookup, &tableShapes[i])
		if err != nil {
			return nil, err
		}
		raw[i] = r
		names := 1
		if i == 0 {
			names = 3 // type, field and type string
		}
		for e := range r.len() {
			for n := range names {
				text.want(r.u64(e, n))
			}
		}
	}
	if err := text.read(m); err != nil {
		return nil, err
	}
	return parseTables(&raw, &text), nil
}

func parseTables(raw *[4]rawTable, text *textPages) *tables {
	t := &tables{
		fields: make(map[fieldName]tableField, raw[0].len()),
		sizes:  make(map[string]uint64, raw[1].len()),
		ints:   make(map[string]int32, raw[2].len()),
		longs:  make(map[string]uint64, raw[3].len()),
	}
	// Entries of one type follow each other and share one name, so texts repeat.
	seen := make(map[uint64]string, 1024)
	str := func(addr uint64) string {
		s, ok := seen[addr]
		if !ok {
			s, _ = text.str(addr)
			seen[addr] = s
		}
		return s
	}
	r := &raw[0]
	for i := range r.len() {
		name := fieldName{str(r.u64(i, 0)), str(r.u64(i, 1))}
		if name.typ == "" || name.field == "" {
			continue
		}
		f := tableField{typ: str(r.u64(i, 2)), static: r.u32(i, 3) != 0}
		if f.static {
			f.addr = r.u64(i, 5)
		} else {
			f.offset = r.u64(i, 4)
		}
		t.fields[name] = f
	}
	for i := range raw[1].len() {
		t.sizes[str(raw[1].u64(i, 0))] = raw[1].u64(i, 1)
	}
	for i := range raw[2].len() {
		t.ints[str(raw[2].u64(i, 0))] = int32(raw[2].u32(i, 1))
	}
	for i := range raw[3].len() {
		t.longs[str(raw[3].u64(i, 0))] = raw[3].u64(i, 1)
	}
	return t
}

// readRawTable reads one array up to the entry without a name that ends it.
func readRawTable(m process.Memory, lookup func(string) (uint64, error), shape *tableShape) (rawTable, error) {
	values, err := readVariables(m, lookup, append([]string{shape.array, shape.stride}, shape.offsets...))
	if err != nil {
		return rawTable{}, err
	}
	start, stride := values[0], values[1]
	if start == 0 || stride == 0 {
		return rawTable{}, ErrStarting // JDK 8 sets even the strides at load time
	}
	if stride > maxStride || stride%8 != 0 {
		return rawTable{}, fmt.Errorf("%w: %s is %d", ErrBadTables, shape.stride, stride)
	}
	r := rawTable{stride: int(stride)}
	for i, off := range values[2:] {
		if off > stride-8 {
			// The value of an int constant has only four bytes, so it may be at the end of the entry.
			if off > stride-4 || shape.array != "gHotSpotVMIntConstants" {
				return rawTable{}, fmt.Errorf("%w: %s is %d", ErrBadTables, shape.offsets[i], off)
			}
		}
		r.member = append(r.member, int(off))
	}
	r.bytes, err = readUntilEnd(m, start, &r)
	return r, err
}

func readVariables(m process.Memory, lookup func(string) (uint64, error), symbols []string) ([]uint64, error) {
	buf := make([]byte, 8*len(symbols))
	ranges := make([]process.Range, len(symbols))
	for i, s := range symbols {
		addr, err := lookup(s)
		if err != nil {
			return nil, fmt.Errorf("%w: no symbol %s: %w", ErrNotHotSpot, s, err)
		}
		ranges[i] = process.Range{Addr: addr, Buf: buf[8*i : 8*i+8]}
	}
	m.ReadMany(ranges)
	values := make([]uint64, len(symbols))
	for i := range ranges {
		if !ranges[i].OK {
			return nil, fmt.Errorf("reading %s: %w", symbols[i], process.ErrFault)
		}
		values[i] = binary.LittleEndian.Uint64(ranges[i].Buf)
	}
	return values, nil
}

// readUntilEnd reads entries from start until one has no name. It reads eight pages at a time, or page by page if eight
// cannot be read, because the memory after the array may be unmapped.
func readUntilEnd(m process.Memory, start uint64, r *rawTable) ([]byte, error) {
	var out []byte
	done := 0 // entries that were checked
	for next, pages := start, uint64(8); ; {
		chunk := pages*pageSize - next%pageSize
		old := len(out)
		out = slices.Grow(out, int(chunk))[:old+int(chunk)]
		if err := m.Read(next, out[old:]); err != nil {
			if pages == 1 || errors.Is(err, process.ErrGone) {
				return nil, fmt.Errorf("reading a table of the JVM: %w", err)
			}
			out, pages = out[:old], 1
			continue
		}
		next += chunk
		for ; (done+1)*r.stride <= len(out); done++ {
			if binary.LittleEndian.Uint64(out[done*r.stride+r.member[0]:]) == 0 {
				return out[:done*r.stride], nil
			}
			if done == maxEntries {
				return nil, fmt.Errorf("%w: more than %d entries", ErrBadTables, maxEntries)
			}
		}
	}
}

const pageSize = 4096

// textPages has the pages of libjvm.so with the names. The linker puts all strings of a library together, so a few
// pages hold thousands of names.
type textPages struct {
	wanted []uint64 // addresses of pages, without adjacent duplicates
	addrs  []uint64 // sorted
	bytes  []byte
	ok     []bool
}

func (t *textPages) want(addr uint64) {
	if addr == 0 {
		return
	}
	page := addr &^ (pageSize - 1)
	if n := len(t.wanted); n == 0 || t.wanted[n-1] != page {
		t.wanted = append(t.wanted, page)
	}
	if addr-page > pageSize-maxUsualText {
		t.wanted = append(t.wanted, page+pageSize)
	}
}

// read reads all wanted pages, each once.
func (t *textPages) read(m process.Memory) error {
	slices.Sort(t.wanted)
	t.addrs = slices.Compact(t.wanted)
	if len(t.addrs) > maxTextPage {
		return fmt.Errorf("%w: names in more than %d pages", ErrBadTables, maxTextPage)
	}
	t.bytes = make([]byte, len(t.addrs)*pageSize)
	t.ok = make([]bool, len(t.addrs))
	// Adjacent pages become one range.
	var ranges []process.Range
	var first []int // index of the first page of each range
	for i, addr := range t.addrs {
		if i > 0 && t.addrs[i-1]+pageSize == addr {
			last := &ranges[len(ranges)-1]
			last.Buf = t.bytes[first[len(first)-1]*pageSize : (i+1)*pageSize]
			continue
		}
		ranges = append(ranges, process.Range{Addr: addr, Buf: t.bytes[i*pageSize : (i+1)*pageSize]})
		first = append(first, i)
	}
	m.ReadMany(ranges)
	for i := range ranges {
		for p := range len(ranges[i].Buf) / pageSize {
			page := first[i] + p
			t.ok[page] = ranges[i].OK
			if !ranges[i].OK && len(ranges[i].Buf) > pageSize {
				t.ok[page] = m.Read(t.addrs[page], t.bytes[page*pageSize:(page+1)*pageSize]) == nil
			}
		}
	}
	return nil
}

// str returns the C string at addr, which may continue in the following pages. ok is false if a page was not read.
func (t *textPages) str(addr uint64) (string, bool) {
	page, found := slices.BinarySearch(t.addrs, addr&^(pageSize-1))
	if !found || !t.ok[page] {
		return "", false
	}
	start := page*pageSize + int(addr%pageSize)
	end := start
	for {
		chunk := t.bytes[end : (page+1)*pageSize]
		if i := bytes.IndexByte(chunk, 0); i >= 0 {
			end += i
			break
		}
		end = (page + 1) * pageSize
		page++
		if page == len(t.addrs) || !t.ok[page] || t.addrs[page] != t.addrs[page-1]+pageSize || end-start > maxText {
			return "", false
		}
	}
	if end-start > maxText {
		return "", false
	}
	return string(t.bytes[start:end]), true
}
