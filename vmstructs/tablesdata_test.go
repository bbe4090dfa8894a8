package vmstructs

import (
	"bufio"
	"compress/gzip"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// jdkTables are the tables of one real JVM, from testdata/tables.txt.gz.
type jdkTables struct {
	name string // "x86_64-17"
	tab  *tables
}

func (j jdkTables) major(t testing.TB) int {
	_, v, _ := strings.Cut(j.name, "-")
	n, err := strconv.Atoi(strings.TrimSuffix(v, "t")) // 25t is Temurin
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// staticsAt is the address of the fake static variables, one every 16 bytes.
const staticsAt = 0x7f0000100000

// parsedTables caches the result of loadTables: parsing takes 50 ms, and about twenty tests use the result.
var parsedTables []jdkTables

// loadTables reads the tables of real JVMs. The caller may change them.
func loadTables(t testing.TB) []jdkTables {
	t.Helper()
	if parsedTables == nil {
		parsedTables = dumpedTables(t)
	}
	all := slices.Clone(parsedTables)
	for i := range all {
		all[i].tab = all[i].tab.clone()
	}
	return all
}

func dumpedTables(t testing.TB) []jdkTables {
	t.Helper()
	f, err := os.Open("testdata/tables.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return parseDumps(t, z)
}

// someTables returns tables for tests that go through every field: all tables, or each fourth one in make quick.
func someTables(t testing.TB) (some []jdkTables) {
	t.Helper()
	for i, j := range loadTables(t) {
		if !testing.Short() || i%4 == 0 {
			some = append(some, j)
		}
	}
	return some
}

// parseDumps reads the output of writeTables.
func parseDumps(t testing.TB, r io.Reader) []jdkTables {
	t.Helper()
	var all []jdkTables
	var tab *tables
	next := uint64(staticsAt)
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		c := append(strings.Split(lines.Text(), "\t"), "", "", "", "", "")
		num := func(s string) uint64 {
			v, err := strconv.ParseInt(s, 0, 64)
			if err != nil {
				u, err := strconv.ParseUint(s, 0, 64)
				if err != nil {
					t.Fatalf("%q: %v", lines.Text(), err)
				}
				return u
			}
			return uint64(v)
		}
		switch c[0] {
		case "jdk":
			tab = &tables{map[fieldName]tableField{}, map[string]uint64{}, map[string]int32{}, map[string]uint64{}}
			all = append(all, jdkTables{c[1], tab})
			next = staticsAt
		case "type":
			tab.sizes[c[1]] = num(c[4])
		case "int":
			tab.ints[c[1]] = int32(num(c[4]))
		case "long":
			tab.longs[c[1]] = num(c[4])
		case "field":
			field := tableField{typ: c[5], static: c[3] == "1"}
			if field.static {
				field.addr = next
				next += 16
			} else {
				field.offset = num(c[4])
			}
			tab.fields[fieldName{c[1], c[2]}] = field
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTablesOfTested: there are tables of every tested release. On arm64 they differ only in sizes.
func TestTablesOfTested(t *testing.T) {
	all := loadTables(t)
	for _, r := range tested() {
		name := "x86_64-" + strconv.Itoa(r.major)
		if !slices.ContainsFunc(all, func(j jdkTables) bool { return j.name == name }) {
			t.Errorf("no tables of %s", name)
		}
	}
}

// TestEveryJDKHasAllCapabilities: no tested JDK lacks a capability, on either CPU.
func TestEveryJDKHasAllCapabilities(t *testing.T) {
	for _, j := range loadTables(t) {
		t.Run(j.name, func(t *testing.T) {
			l, r := resolve(j.tab)
			if got := r.report(); len(got) != 0 {
				t.Errorf("missing: %q", got)
			}
			if want := j.major(t) == 8; l.jdk8 != want {
				t.Errorf("taken for JDK 8: %v", l.jdk8)
			}
		})
	}
}

// TestResolvedOffsets checks offsets that differ between releases. The expected values were read field by field from
// the same JVMs, and from their debugger.
func TestResolvedOffsets(t *testing.T) {
	type want struct{ name, poolLength, level, anchor, osThread, poolFile int }
	rows := map[string]want{
		"x86_64-8":   {8, 60, 208, 576, 392, -1},
		"x86_64-11":  {96, 52, 328, 816, 624, -1},
		"x86_64-17":  {96, 60, 308, 656, 560, 54},
		"x86_64-21":  {64, 60, 328, 928, 792, 54},
		"x86_64-25t": {8, 60, 216, 1152, 1016, 54},
		"x86_64-25":  {8, 68, 216, 1152, 1016, 62},
		"x86_64-27":  {8, 68, 208, 1128, 992, 62},
		"aarch64-21": {64, 60, 324, 928, 792, 54},
		"aarch64-25": {8, 68, 216, 1160, 1024, 62},
		"aarch64-27": {8, 68, 208, 1136, 1000, 62},
	}
	for _, j := range loadTables(t) {
		w, ok := rows[j.name]
		if !ok {
			continue
		}
		l, _ := resolve(j.tab)
		got := want{int(l.blob.name), int(l.method.poolLength), int(l.nm.level), int(l.thread.anchor),
			int(l.thread.osThread), int(l.method.poolFile)}
		if got != w {
			t.Errorf("%s: %+v, want %+v", j.name, got, w)
		}
		if width := l.blob.frameComplete.width; (width == 2) != (j.major(t) >= 25) {
			t.Errorf("%s: frame complete offset of %d bytes", j.name, width)
		}
		if width := l.code.blockLength.width; (width == 4) != (j.major(t) >= 25) {
			t.Errorf("%s: block length of %d bytes", j.name, width)
		}
	}
}

// TestMissingFieldsCostTheirCapability: if a JVM lacks a field, everything else works that does not need the field.
func TestMissingFieldsCostTheirCapability(t *testing.T) {
	for _, c := range []struct{ typ, field, capability string }{
		{"JavaThread", "_anchor", capAnchors},
		{"JavaThread", "_vframe_array_head", capDeopt},
		{"CompilerThread", "_env", capCompiler},
		{"JVMFlag", "flags", capFlags},
		{"InterpreterCodelet", "_size", capInterp},
		{"nmethod", "_scopes_pcs_offset", capScopes},
		{"CodeBlob", "_name", capBlobs},
	} {
		j := loadTables(t)[9]
		delete(j.tab.fields, fieldName{c.typ, c.field})
		_, r := resolve(j.tab)
		got := r.report()
		if len(got) != 1 || !strings.HasPrefix(got[0], c.capability+": "+c.typ+"."+c.field) {
			t.Errorf("%s without %s.%s: %q", j.name, c.typ, c.field, got)
		}
		if lost := r.essentials(); (len(lost) > 0) != (c.capability == capBlobs) {
			t.Errorf("essentials without %s.%s: %q", c.typ, c.field, lost)
		}
	}
}

// TestHugeEntriesAreNotRead: the target's size of an array's entries may be false.
func TestHugeEntriesAreNotRead(t *testing.T) {
	for typ, lost := range map[string]string{
		"JVMFlag":             capFlags + ": sizeof JVMFlag",
		"ImmutableOopMapPair": capSafepoints + ": sizeof ImmutableOopMapPair",
	} {
		j := loadTables(t)[9]
		j.tab.sizes[typ] = maxOffset - 1
		l, r := resolve(j.tab)
		if got := r.report(); len(got) != 1 || got[0] != lost {
			t.Errorf("%s of %d bytes: lost is %q", typ, maxOffset-1, got)
		}
		if typ == "JVMFlag" && l.flags.size != 0 {
			t.Errorf("flags of %d bytes would be read", l.flags.size)
		}
	}
}
