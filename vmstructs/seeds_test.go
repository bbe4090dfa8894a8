package vmstructs

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goprof/testdata/captured"
	"goprof/testdata/fuzzseed"
)

// TestWriteSeeds makes seeds from the recorded walks, for this package and for package arch, which has no access to
// recordings (see package fuzzseed).
func TestWriteSeeds(t *testing.T) {
	fuzzseed.Making(t)
	files, _ := filepath.Glob("../unwind/testdata/walks/*.walks")
	if len(files) == 0 {
		t.Fatal("no recorded walks")
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		rec, err := captured.Load(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		vm, err := Open(rec)
		if err != nil {
			t.Fatal(err)
		}
		s := seeds{t: t, name: strings.TrimSuffix(filepath.Base(file), ".walks"), vm: vm, rec: rec}
		s.collect()
		s.debugInfo()
		s.lines()
		s.code()
		s.tables()
	}
}

// seeds is the material of one recording.
type seeds struct {
	t       *testing.T
	name    string
	vm      *VM
	rec     *captured.Recording
	blobs   []*Blob
	pcs     map[*Blob]uint64 // one pc in each blob
	methods []*Method
}

// collect finds the code and the methods on the recorded stacks.
func (s *seeds) collect() {
	s.pcs = map[*Blob]uint64{}
	methods := map[*Method]bool{}
	for i, snap := range s.rec.Snapshots {
		s.rec.Step(i)
		words := []uint64{snap.Regs[s.rec.CPU().PC]}
		for at := 0; at+8 <= len(snap.Stack); at += 8 {
			words = append(words, word(snap.Stack[at:]))
		}
		for _, pc := range words {
			if !s.vm.InCode(pc) {
				continue
			}
			b, err := s.vm.Blob(pc)
			if err != nil || s.pcs[b] != 0 {
				continue
			}
			s.pcs[b] = pc
			s.blobs = append(s.blobs, b)
			scopes, _ := s.vm.Scopes(b, pc, true)
			for _, sc := range scopes {
				if sc.Method != nil && !methods[sc.Method] {
					methods[sc.Method] = true
					s.methods = append(s.methods, sc.Method)
				}
			}
		}
	}
	slices.SortFunc(s.blobs, func(a, b *Blob) int { return cmp.Compare(a.Addr, b.Addr) })
	slices.SortFunc(s.methods, func(a, b *Method) int { return cmp.Compare(a.Addr, b.Addr) })
}

// some returns n items of a list, spread over all of it.
func some[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	var out []T
	for i := range n {
		out = append(out, list[i*len(list)/n])
	}
	return out
}

func (s *seeds) debugInfo() {
	var small []*Blob
	for _, b := range s.blobs {
		if n := len(b.debug.pcs) + len(b.debug.scopes); b.Kind == Nmethod && n > 0 && n < 6<<10 {
			small = append(small, b)
		}
	}
	for i, b := range some(small, 24) {
		d := &b.debug
		fuzzseed.Write(s.t, ".", "FuzzScopes", fmt.Sprintf("%s-%d", s.name, i), d.pcs, d.scopes, uint16(len(d.metadata)/8),
			s.vm.l.method.unsigned5X)
	}
}

func (s *seeds) lines() {
	var tables [][]byte
	x := s.vm.l.method.unsigned5X
	for _, m := range s.methods {
		if n := len(m.lines); n > 3 && n < 400 {
			tables = append(tables, appendLines(nil, m.lines, x))
		}
	}
	for i, b := range some(tables, 16) {
		fuzzseed.Write(s.t, ".", "FuzzLines", fmt.Sprintf("%s-%d", s.name, i), b, x)
	}
}

// code makes seeds of pieces of generated code, each as long as a function, around a thread's pc.
func (s *seeds) code() {
	var code []byte
	n := 0
	for _, b := range some(s.blobs, 200) {
		var err error
		if code, err = s.vm.Code(b, code); err != nil || n == 24 {
			continue
		}
		off := s.pcs[b] - b.Begin
		from := off - min(off, 160)
		piece := code[from:min(off+600, uint64(len(code)))]
		name := fmt.Sprintf("%s-%d", s.name, n)
		fuzzseed.Write(s.t, "../arch/amd64", "FuzzTrace", name, slices.Clone(piece), uint16(off-from),
			uint16(max(b.FrameSize, 0)*8))
		if n < 8 {
			fuzzseed.Write(s.t, "../arch/amd64", "FuzzDecode", name, slices.Clone(code[off:min(off+256, uint64(len(code)))]))
		}
		n++
	}
}

// tables makes seeds of the fields, types and constants that goprof uses, and some others, with their real values. It
// writes them in the form that FuzzTables reads.
func (s *seeds) tables() {
	tab, err := readTables(s.rec, func(symbol string) (uint64, error) { return s.rec.Global(libjvm, symbol) })
	if err != nil {
		s.t.Fatal(err)
	}
	const most = 140
	var fields []fieldName
	for name := range tab.fields {
		fields = append(fields, name)
	}
	slices.SortFunc(fields, func(a, b fieldName) int {
		// Fields of code and methods come first.
		used := func(f fieldName) int {
			for _, typ := range []string{"CodeBlob", "nmethod", "CodeHeap", "CodeCache", "HeapBlock::Header", "VirtualSpace",
				"Method", "ConstMethod", "ConstantPool", "Symbol", "InstanceKlass", "Klass"} {
				if f.typ == typ {
					return 0
				}
			}
			return 1
		}
		return cmp.Or(used(a)-used(b), cmp.Compare(a.typ, b.typ), cmp.Compare(a.field, b.field))
	})
	fields = fields[:min(len(fields), most)]
	m := tableSeed()
	for _, name := range fields {
		f := tab.fields[name]
		static := uint64(0)
		if f.static {
			static = 1
		}
		m.entry(0, m.text(name.typ), m.text(name.field), m.text(f.typ), static, f.offset, f.addr)
	}
	for _, typ := range sortedNames(tab.sizes, 60) {
		m.entry(1, m.text(typ), 0, 0, 0, tab.sizes[typ])
	}
	for _, name := range sortedNames(tab.ints, 60) {
		m.entry(2, m.text(name), uint64(uint32(tab.ints[name])))
	}
	for _, name := range sortedNames(tab.longs, 20) {
		m.entry(3, m.text(name), tab.longs[name])
	}
	b := m.bytes()
	at := uint64(0)
	again, err := readTables(sliceMemory(b), func(string) (uint64, error) { at += 8; return at - 8, nil })
	if err != nil || len(again.fields) != len(fields) {
		s.t.Fatalf("%d fields, %v", len(again.fields), err)
	}
	fuzzseed.Write(s.t, ".", "FuzzTables", s.name, b)
}

func sortedNames[V any](m map[string]V, most int) []string {
	var names []string
	for name := range m {
		if name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return some(names, most)
}

// tableMemory is memory with tables: variables, names, then one array of each kind.
type tableMemory struct {
	texts   []byte
	at      map[string]uint64
	entries [4][]byte
}

const tableTexts = 0x100

var tableStrides = [4]uint64{48, 40, 16, 16}

func tableSeed() *tableMemory { return &tableMemory{at: map[string]uint64{}} }

func (m *tableMemory) text(s string) uint64 {
	if s == "" {
		return 0
	}
	if m.at[s] == 0 {
		m.at[s] = tableTexts + uint64(len(m.texts))
		m.texts = append(append(m.texts, s...), 0)
	}
	return m.at[s]
}

func (m *tableMemory) entry(table int, words ...uint64) {
	b := make([]byte, tableStrides[table])
	for i, v := range words {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
	m.entries[table] = append(m.entries[table], b...)
}

func (m *tableMemory) bytes() []byte {
	var vars []byte
	next := (tableTexts + uint64(len(m.texts)) + 15) &^ 15
	for i := range tableShapes {
		vars = binary.LittleEndian.AppendUint64(vars, next)
		vars = binary.LittleEndian.AppendUint64(vars, tableStrides[i])
		for _, off := range [4][]uint64{{0, 8, 16, 24, 32, 40}, {0, 32}, {0, 8}, {0, 8}}[i] {
			vars = binary.LittleEndian.AppendUint64(vars, off)
		}
		next += uint64(len(m.entries[i])) + tableStrides[i]
	}
	b := make([]byte, next)
	copy(b, vars)
	copy(b[tableTexts:], m.texts)
	at := (tableTexts + len(m.texts) + 15) &^ 15
	for i := range m.entries {
		at += copy(b[at:], m.entries[i]) + int(tableStrides[i])
	}
	return b
}
