package process

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"goprof/testdata/jvmtest"
)

// TestSymbolsAgainstDebugELF looks up random addresses of real libraries. It compares the result with a linear search
// through the symbols that the standard library reads.
func TestSymbolsAgainstDebugELF(t *testing.T) {
	for _, path := range oracleFiles(t, thisMachine) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			std, err := elf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer std.Close()
			section, syms := ".symtab", []elf.Symbol(nil)
			if syms, err = std.Symbols(); err != nil {
				section = ".dynsym"
				if syms, err = std.DynamicSymbols(); err != nil {
					t.Fatal(err)
				}
			}
			f := loadELF(t, path)
			table := f.readSymtab(section)
			if table == nil {
				t.Fatalf("no %s", section)
			}
			table.sort(f)
			text := std.Section(".text")
			rnd := rand.New(rand.NewPCG(1, 2))
			named := 0
			for range 500 {
				addr := text.Addr + rnd.Uint64N(text.Size)
				name, ok := table.lookup(addr)
				if ok {
					named++
				}
				if !plausible(syms, addr, string(name), ok) {
					t.Errorf("at %#x: %q, %v", addr, name, ok)
				}
			}
			t.Logf("%d symbols of %s name code; %d of 500 addresses have a name", len(table.order.symbols), section, named)
			for _, s := range syms[:min(len(syms), 300)] {
				if s.Section != elf.SHN_UNDEF && s.Name != "" && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
					if addr, ok := table.find(s.Name); !ok || !hasName(syms, addr, s.Name) {
						t.Errorf("find %q: %#x, %v", s.Name, addr, ok)
					}
				}
			}
		})
	}
}

func isFunction(s elf.Symbol) bool {
	typ := elf.ST_TYPE(s.Info)
	return (typ == elf.STT_FUNC || typ == elf.STT_GNU_IFUNC) && s.Section != elf.SHN_UNDEF
}

// plausible reports whether name is right. A function with a size that holds addr is preferred. Otherwise it is the
// nearest symbol below addr, if that has no size.
func plausible(syms []elf.Symbol, addr uint64, name string, ok bool) bool {
	held := false
	for _, s := range syms {
		if isFunction(s) && addr >= s.Value && addr-s.Value < s.Size {
			held = true
			if ok && s.Name == name {
				return true
			}
		}
	}
	if held {
		return false
	}
	if !ok {
		return true
	}
	for _, s := range syms { // a label, or a function without a size
		if s.Name == name && s.Value <= addr && (s.Size == 0 || addr-s.Value < s.Size) {
			return true
		}
	}
	return false
}

func hasName(syms []elf.Symbol, addr uint64, name string) bool {
	for _, s := range syms {
		if s.Value == addr && s.Name == name {
			return true
		}
	}
	return false
}

func rawSym(name uint32, typ elf.SymType, bind elf.SymBind, value, size uint64) []byte {
	b := make([]byte, symSize)
	binary.LittleEndian.PutUint32(b, name)
	b[4] = byte(bind)<<4 | byte(typ)
	binary.LittleEndian.PutUint16(b[6:], 1)
	binary.LittleEndian.PutUint64(b[8:], value)
	binary.LittleEndian.PutUint64(b[16:], size)
	return b
}

func TestSymbolRules(t *testing.T) {
	type s struct {
		name        string
		typ         elf.SymType
		bind        elf.SymBind
		value, size uint64
	}
	for _, c := range []struct {
		name string
		syms []s
		want map[uint64]string
	}{
		{"a size ends a symbol", []s{{"f", elf.STT_FUNC, elf.STB_GLOBAL, 100, 10}},
			map[uint64]string{99: "", 100: "f", 109: "f", 110: ""}},
		{"none reaches to the next", []s{{"f", elf.STT_FUNC, elf.STB_GLOBAL, 100, 0},
			{"g", elf.STT_FUNC, elf.STB_GLOBAL, 120, 4}},
			map[uint64]string{100: "f", 119: "f", 120: "g", 124: ""}},
		{"a function wins over a label", []s{{"label", elf.STT_NOTYPE, elf.STB_GLOBAL, 100, 0},
			{"f", elf.STT_FUNC, elf.STB_LOCAL, 100, 8}},
			map[uint64]string{100: "f", 107: "f"}},
		{"a label inside a function is none", []s{{"f", elf.STT_FUNC, elf.STB_GLOBAL, 100, 20},
			{"loop", elf.STT_NOTYPE, elf.STB_LOCAL, 110, 0}},
			map[uint64]string{105: "f", 115: "f", 120: ""}},
		{"a function inside a function", []s{{"outer", elf.STT_FUNC, elf.STB_GLOBAL, 100, 50},
			{"inner", elf.STT_FUNC, elf.STB_GLOBAL, 110, 5}},
			map[uint64]string{105: "outer", 112: "inner", 116: "outer", 149: "outer", 150: ""}},
		{"a global alias wins", []s{{"__read", elf.STT_FUNC, elf.STB_LOCAL, 100, 8},
			{"read", elf.STT_FUNC, elf.STB_GLOBAL, 100, 8}},
			map[uint64]string{100: "read"}},
		{"marks of arm64", []s{{"$x", elf.STT_NOTYPE, elf.STB_LOCAL, 100, 0}, {"$d", elf.STT_NOTYPE, elf.STB_LOCAL, 110, 0}},
			map[uint64]string{100: "", 112: ""}},
		{"data", []s{{"table", elf.STT_OBJECT, elf.STB_GLOBAL, 100, 8}}, map[uint64]string{100: ""}},
		{"sizes that wrap around", []s{{"bad", elf.STT_FUNC, elf.STB_GLOBAL, 100, 1<<64 - 50}},
			map[uint64]string{100: "", 1000: ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := &symtab{names: []byte{0}}
			for _, s := range c.syms {
				table.raw = append(table.raw, rawSym(uint32(len(table.names)), s.typ, s.bind, s.value, s.size)...)
				table.names = append(append(table.names, s.name...), 0)
			}
			table.order = &order{symbols: table.sorted(func(uint64) bool { return true })}
			for addr, want := range c.want {
				if got, _ := table.lookup(addr); string(got) != want {
					t.Errorf("at %d: %q, want %q", addr, got, want)
				}
			}
		})
	}
}

// TestLinkerTable: the code with which a library calls others is between .init and .text. The function _init has no
// size, and ends before that code.
func TestLinkerTable(t *testing.T) {
	dir := t.TempDir()
	source, lib := filepath.Join(dir, "lib.c"), filepath.Join(dir, "lib.so")
	if err := os.WriteFile(source, []byte("#include <stdlib.h>\nint visible(int x) { return abs(x) + rand(); }\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "gcc", "-O1", "-fPIC", "-shared", "-o", lib, source)
	f := loadELF(t, lib)
	table := f.readSymtab(".symtab")
	table.sort(f)
	code := 0
	for _, name := range []string{".plt", ".plt.got", ".plt.sec"} {
		section := f.section(name)
		if section == nil {
			continue
		}
		for addr := section.Addr; addr < section.Addr+section.Size; addr += 4 {
			code++
			if name, ok := table.lookup(addr); ok {
				t.Errorf("%#x is named %s", addr, name)
			}
		}
	}
	if code == 0 {
		t.Error("the library has no linker's table, so this test proves nothing")
	}
	if init, ok := table.find("_init"); ok {
		if name, _ := table.lookup(init); string(name) != "_init" {
			t.Errorf("_init is named %q", name)
		}
	}
}

// diskFiles is the file system as imageFiles.
type diskFiles struct {
	arrayMemory
	image string
	roots [2]string // prefixes of paths
}

func (d *diskFiles) openImage(*group) (imageFile, int64, error) { return openDisk(d.image) }

func (d *diskFiles) inRoot(path string) string { return path }

func (d *diskFiles) openDebug(path string, where debugRoot) (imageFile, int64, error) {
	return openDisk(d.roots[where] + path)
}

func openDisk(path string) (imageFile, int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	return f, st.Size(), nil
}

const librarySource = `
static int __attribute__((noinline)) hidden_helper(int x) { return x * 3 + 1; }
int visible(int x) { return hidden_helper(x) + hidden_helper(x + 1); }
`

// run runs a tool. It skips the test if the tool is not installed.
func run(t testing.TB, name string, args ...string) string {
	t.Helper()
	jvmtest.NotQuick(t, jvmtest.Builds)
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("%s is not installed", name)
	}
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func buildLibrary(t testing.TB, dir string) (path string, helper uint64) {
	t.Helper()
	source := filepath.Join(dir, "lib.c")
	if err := os.WriteFile(source, []byte(librarySource), 0o600); err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(dir, "libsmall.so")
	run(t, "gcc", "-O2", "-fPIC", "-shared", "-Wl,--build-id=sha1", "-o", path, source)
	addr, ok := loadELF(t, path).readSymtab(".symtab").find("hidden_helper")
	if !ok {
		t.Fatal("the compiler left no hidden_helper")
	}
	return path, addr
}

// TestDebugFiles strips a library in each way that distributions use. It looks for a function that is only in the full
// symbol table.
func TestDebugFiles(t *testing.T) {
	lookup := func(t *testing.T, lib string, addr uint64, roots [2]string) string {
		t.Helper()
		l := &loaded{group: group{Image: Image{Name: "libsmall.so", Path: lib}, first: Mapping{Inode: 1}},
			files: &diskFiles{image: lib, roots: roots}}
		return l.symbol(addr)
	}
	nowhere := [2]string{"/nowhere", "/nowhere"}

	t.Run("full", func(t *testing.T) {
		lib, addr := buildLibrary(t, t.TempDir())
		if got := lookup(t, lib, addr, nowhere); got != "hidden_helper" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("stripped", func(t *testing.T) {
		lib, addr := buildLibrary(t, t.TempDir())
		run(t, "strip", lib)
		if got := lookup(t, lib, addr, nowhere); got != "" {
			t.Errorf("got %q", got)
		}
	})
	t.Run("more than may be read", func(t *testing.T) {
		lib, addr := buildLibrary(t, t.TempDir())
		l := &loaded{group: group{Image: Image{Name: "libsmall.so", Path: lib}, first: Mapping{Inode: 1}},
			files: &diskFiles{image: lib}}
		l.budget = &readBudget{left: 1 << 20}
		if got := l.symbol(addr); got != "hidden_helper" || l.budget.left >= 1<<20 {
			t.Errorf("got %q, %d bytes left", got, l.budget.left)
		}
		spent := 1<<20 - l.budget.left
		l = &loaded{group: l.group, files: l.files, budget: &readBudget{left: spent - 1}}
		if got := l.symbol(addr); got != "" {
			t.Errorf("got %q with a byte less than it takes", got)
		}
	})
	for n, root := range []string{"target's root", "our root"} {
		t.Run("build id in the "+root, func(t *testing.T) {
			dir := t.TempDir()
			lib, addr := buildLibrary(t, dir)
			debug := filepath.Join(dir, buildIDPath(loadELF(t, lib).buildID()))
			if err := os.MkdirAll(filepath.Dir(debug), 0o700); err != nil {
				t.Fatal(err)
			}
			run(t, "objcopy", "--only-keep-debug", lib, debug)
			run(t, "strip", lib)
			roots := nowhere
			roots[n] = dir
			if got := lookup(t, lib, addr, roots); got != "hidden_helper" {
				t.Errorf("got %q", got)
			}
			// A file with that name from another build is not used.
			other, err := os.ReadFile(debug)
			if err != nil {
				t.Fatal(err)
			}
			id := loadELF(t, lib).buildID()
			wrong := bytes.ReplaceAll(other, id, bytes.Repeat([]byte{7}, len(id)))
			if err := os.WriteFile(debug, wrong, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := lookup(t, lib, addr, roots); got != "" {
				t.Errorf("a wrong debug file was believed: %q", got)
			}
		})
	}
	t.Run("debuglink", func(t *testing.T) {
		dir := t.TempDir()
		lib, addr := buildLibrary(t, dir)
		debug := filepath.Join(dir, "libsmall.debug")
		run(t, "objcopy", "--only-keep-debug", lib, debug)
		run(t, "strip", lib)
		run(t, "objcopy", "--add-gnu-debuglink="+debug, lib)
		if got := lookup(t, lib, addr, [2]string{"", "/nowhere"}); got != "hidden_helper" {
			t.Errorf("got %q", got)
		}
		if got := lookup(t, lib, addr, [2]string{"/nowhere", ""}); got != "" {
			t.Errorf("the target's name for a debug file led to one of the host: %q", got)
		}
		f, err := os.OpenFile(debug, os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.Write([]byte("x"))
		f.Close()
		if got := lookup(t, lib, addr, [2]string{"", "/nowhere"}); got != "" {
			t.Errorf("a debug file with a wrong checksum was believed: %q", got)
		}
	})
	t.Run("mini debug info", func(t *testing.T) {
		if exec.Command("xz", "--version").Run() != nil && os.Getenv("GOPROF_EMULATED") != "" {
			t.Skip("the emulated machine has no xz that compresses") // scripts/arm64.sh makes that machine
		}
		dir := t.TempDir()
		lib, addr := buildLibrary(t, dir)
		mini := filepath.Join(dir, "mini")
		run(t, "objcopy", "-S", "--keep-symbol=hidden_helper", lib, mini)
		run(t, "xz", mini)
		run(t, "strip", lib)
		run(t, "objcopy", "--add-section", ".gnu_debugdata="+mini+".xz", lib)
		if got := lookup(t, lib, addr, nowhere); got != "hidden_helper" {
			t.Errorf("got %q", got)
		}
	})
}

func TestUnpackXZIsBounded(t *testing.T) {
	// A stream header, and a block that requests a dictionary of 4 GB.
	head := append([]byte("\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4\x46"), 2, 0, 0x21, 1, 40, 0, 0, 0, 0, 0, 0, 0)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	unpackXZ(head)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 2*maxMiniDebug {
		t.Errorf("%d bytes allocated", n)
	}
	for i := range head {
		if _, err := unpackXZ(head[:i]); err == nil {
			t.Errorf("%d bytes are no error", i)
		}
	}
}

func BenchmarkReadSymbols(b *testing.B) {
	for _, path := range oracleFiles(b, thisMachine) {
		b.Run(filepath.Base(path), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				l := &loaded{group: group{Image: Image{Name: "x", Path: path}, first: Mapping{Inode: 1}},
					files: &diskFiles{image: path, roots: [2]string{"/nowhere", "/nowhere"}}}
				l.symbol(0)
				if len(l.syms) == 0 {
					b.Fatal("no symbols")
				}
			}
		})
	}
}
