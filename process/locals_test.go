//go:build linux

package process

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os/exec"
	"testing"

	"goprof/arch"
	"goprof/arch/cpus"
	"goprof/testdata/jvmtest"
)

// cLocal prints the thread pointers of two threads and the addresses of their copies of the variable. Another variable
// of the library comes first, so that the offset is not 0.
const cLocal = `
#include <stdio.h>
#include <unistd.h>
#include <pthread.h>
#ifdef LARGE // no room for it among the static ones
__thread char large[1 << 20];
#endif
#ifdef LIBRARY
__attribute__((visibility("default"))) __thread long before = 1;
__attribute__((visibility("default"))) __thread void *some_local;
__attribute__((visibility("default"))) void **local(void) { before++; return &some_local; }
#else
#include <dlfcn.h>
#ifdef PROGRAM
__attribute__((visibility("default"))) __thread long before = 1;
__attribute__((visibility("default"))) __thread void *some_local;
static void **own(void) { before++; return &some_local; }
#endif
static void **(*local)(void);
static void *tell(void *unused) {
	printf("%p %p\n", __builtin_thread_pointer(), (void *)local());
	fflush(stdout);
	if (unused) pause();
	return 0;
}
int main(int argc, char **argv) {
#ifdef PROGRAM
	local = own;
#else
	void *library = dlopen(argv[1], RTLD_NOW);
	if (!library) { puts(dlerror()); return 1; }
	local = dlsym(library, "local");
#endif
	tell(0);
	pthread_t t;
	pthread_create(&t, 0, tell, &t);
	pause();
}
#endif
`

// TestLocals: goprof finds the same address as the code of a library or program, in each thread, with each kind of
// access to thread-local variables.
func TestLocals(t *testing.T) {
	gnu, desc := "-mtls-dialect=gnu", "-mtls-dialect=gnu2"
	if cpus.Here().Locals.Above {
		gnu, desc = "-mtls-dialect=trad", "-mtls-dialect=desc"
	}
	for name, c := range map[string]struct {
		compiler string
		library  []string // nil: the program itself has the variable
		table    bool
	}{
		"function":                   {"gcc", []string{gnu}, true},
		"function, bound to its own": {"gcc", []string{gnu, "-Wl,-Bsymbolic"}, true},
		"function, local module":     {"gcc", []string{"-ftls-model=local-dynamic"}, true},
		"descriptor":                 {"gcc", []string{desc}, false},
		"descriptor, a large block":  {"gcc", []string{desc, "-DLARGE"}, true},
		"initial-exec":               {"gcc", []string{"-ftls-model=initial-exec"}, false},
		"program":                    {"gcc", nil, false},
		"musl, function":             {"musl-gcc", []string{gnu}, true},
		"musl, program":              {"musl-gcc", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			var args []string
			program := []string{"-DPROGRAM", "-rdynamic"}
			if c.library != nil {
				args = append(args, compileWith(t, c.compiler, cLocal, append(c.library, "-DLIBRARY", "-shared", "-fPIC")...))
				program = []string{"-ldl"}
			}
			checkLocal(t, compileWith(t, c.compiler, cLocal, append(program, "-pthread")...), args, c.table)
		})
	}
}

func checkLocal(t *testing.T, program string, args []string, table bool) {
	t.Helper()
	jvmtest.NotQuick(t, jvmtest.RunsPrograms)
	cmd := exec.Command(program, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	lines := bufio.NewScanner(out)
	var threads [2][2]uint64
	for i := range threads {
		lines.Scan()
		if n, err := fmt.Sscanf(lines.Text(), "0x%x 0x%x", &threads[i][0], &threads[i][1]); n != 2 {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
	}
	p, err := Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if none := p.Locals("before_all"); len(none.List) != 0 || none.Pending || none.Unknown {
		t.Errorf("a variable that is not there: %+v", none)
	}
	for _, l := range p.images {
		l.hasLocal = false // found under the other name
	}
	found := p.Locals("some_local")
	if len(found.List) != 1 || found.Pending || found.Unknown || found.List[0].Table != table {
		t.Fatalf("%+v", found)
	}
	for _, th := range threads {
		if at := placeOf(t, p, &found.List[0], th[0]); at != th[1] {
			t.Errorf("%#x, not %#x: %+v", at, th[1], found.List[0])
		}
	}
}

// placeOf computes the address that a Local describes.
func placeOf(t *testing.T, p *Process, v *Local, pointer uint64) uint64 {
	t.Helper()
	word := func(at uint64) uint64 {
		var b [8]byte
		if err := p.Read(at, b[:]); err != nil {
			t.Fatalf("%#x: %v", at, err)
		}
		return binary.LittleEndian.Uint64(b[:])
	}
	if !v.Table {
		return pointer + uint64(v.Offset)
	}
	table := word(pointer + uint64(v.At))
	if size := word(table + uint64(v.Head)); size < v.Module {
		t.Errorf("module %d of %d", v.Module, size)
	}
	if v.Least > 0 && word(table) < v.Least {
		t.Errorf("the table is of %d, and should be of %d", word(table), v.Least)
	}
	return word(table+uint64(v.Block)) + uint64(v.Offset)
}

// memoryOf is memory at address 0x1000.
type memoryOf []byte

func (m memoryOf) Read(addr uint64, b []byte) error {
	if off := addr - 0x1000; off > uint64(len(m)) || uint64(len(b)) > uint64(len(m))-off {
		return ErrFault
	}
	copy(b, m[addr-0x1000:])
	return nil
}

func (m memoryOf) ReadMany(rs []Range) {}

// TestLocalWords: words that no linker writes are not accepted.
func TestLocalWords(t *testing.T) {
	layout := &cpus.ByMachine(elf.EM_X86_64).Locals
	tables := &localTables{at: 8, head: -16, headLen: 24, entry: 16, counts: true}
	words := func(all ...uint64) (b memoryOf) {
		for _, w := range all {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		return b
	}
	const minus = ^uint64(0) - 0x3f // -0x40
	block := func(module, least uint64) Local {
		return Local{Table: true, Offset: 8, At: 8, Head: -16, HeadLen: 24, Block: int64(16 * module), Module: module,
			Least: least}
	}
	pointer, descriptor := exportedLocal{kind: localPointer}, exportedLocal{kind: localDescriptor}
	module := exportedLocal{kind: localModule, offset: 8}
	eighth, sixteenth, alone := descriptor, descriptor, module
	eighth.offset, sixteenth.offset, alone.alone = 8, 16, true
	for name, c := range map[string]struct {
		v      exportedLocal
		m      memoryOf
		tables *localTables
		want   localState
		local  Local
	}{
		"pointer":                    {pointer, words(minus), nil, localFound, Local{Offset: -0x40}},
		"pointer not written":        {pointer, words(0), nil, localPending, Local{}},
		"pointer too far":            {pointer, words(^uint64(1 << 30)), nil, localPending, Local{}},
		"pointer nowhere":            {pointer, nil, nil, localPending, Local{}},
		"descriptor of a static one": {descriptor, words(5, minus), nil, localFound, Local{Offset: -0x40}},
		"descriptor of a block":      {eighth, words(5, 0x1010, 3, 8, 7), tables, localFound, block(3, 7)},
		"descriptor of another":      {sixteenth, words(5, 0x1010, 3, 8, 7), tables, localPending, Local{}},
		"descriptor not written":     {descriptor, words(5, 0), tables, localPending, Local{}},
		"descriptor nowhere":         {descriptor, words(5, 0x7777770), tables, localPending, Local{}},
		"descriptor of half a word":  {descriptor, words(5, 0x1011, 3, 8, 7), tables, localPending, Local{}},
		"module":                     {module, words(2, 8), tables, localFound, block(2, 0)},
		"module alone":               {alone, words(2, 0), tables, localFound, block(2, 0)},
		"module of another library":  {module, words(2, 16), tables, localPending, Local{}},
		"module not written":         {module, words(0, 0), tables, localPending, Local{}},
		"module of too many":         {module, words(1<<40, 0), tables, localPending, Local{}},
		"no table that is known":     {module, words(2, 8), nil, localUnknown, Local{}},
		"program, whatever is there": {exportedLocal{kind: localProgram, distance: -8}, nil, nil, localFound,
			Local{Offset: -8}},
	} {
		c.v.words = 0x1000
		if local, state := c.v.resolve(c.m, layout, c.tables); state != c.want || local != c.local {
			t.Errorf("%s: %v %+v", name, state, local)
		}
	}
}

// TestStaticLocals: the places of the program's own variables, on both CPUs.
func TestStaticLocals(t *testing.T) {
	amd64, arm64 := &cpus.ByMachine(elf.EM_X86_64).Locals, &cpus.ByMachine(elf.EM_AARCH64).Locals
	for name, c := range map[string]struct {
		l                   *arch.LocalsLayout
		offset, size, align uint64
		want                int64
		ok                  bool
	}{
		"amd64":             {amd64, 8, 0x14, 8, 8 - 0x18, true},
		"amd64, aligned":    {amd64, 0, 0x14, 64, -64, true},
		"arm64":             {arm64, 8, 0x14, 8, 24, true},
		"arm64, aligned":    {arm64, 8, 0x14, 64, 72, true},
		"outside the block": {amd64, 0x14, 0x14, 8, 0, false},
		"too large":         {amd64, 0, 1 << 40, 8, 0, false},
		"odd alignment":     {arm64, 0, 8, 3, 0, false},
		"no alignment":      {amd64, 0, 8, 0, -8, true},
	} {
		if got, ok := c.l.OfProgram(c.offset, c.size, c.align); got != c.want || ok != c.ok {
			t.Errorf("%s: %d, %v", name, got, ok)
		}
	}
}

// FuzzLocals: for any image and any words in its memory, the search ends, and a place is plausible.
func FuzzLocals(f *testing.F) {
	f.Add(make([]byte, 64), []byte{1})
	f.Fuzz(func(t *testing.T, image, memory []byte) {
		layout := &cpus.ByMachine(elf.EM_X86_64).Locals
		file, err := readELF(bytes.NewReader(image), int64(len(image)), nil)
		if err != nil {
			return
		}
		table := file.readSymtab(".dynsym")
		if table == nil {
			table = file.dynamicSymtab(0)
		}
		if table == nil {
			return
		}
		for i := range min(uint32(table.len()), 64) {
			s := table.at(i)
			number, found, ok := table.findLocal(string(cstring(table.names, s.name)))
			if !ok {
				continue
			}
			v := exportedLocal{offset: found.value}
			if v.find(file, 0, number, layout); v.kind == localNone {
				continue
			}
			local, state := v.resolve(memoryOf(memory), layout, &localTables{at: 8, head: -16, headLen: 24, entry: 16})
			if state == localFound && !local.Table && !layout.IsStatic(uint64(local.Offset)) {
				t.Fatalf("%+v", local)
			}
			if state == localFound && local.Table && (local.Module == 0 || local.Module > maxModule) {
				t.Fatalf("%+v", local)
			}
		}
	})
}
