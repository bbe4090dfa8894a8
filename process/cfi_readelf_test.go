package process

import (
	"bufio"
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"goprof/arch/cpus"
	"goprof/testdata/jvmtest"
)

// TestCFIAgainstReadelf compares each row of the unwind tables of libc and of the installed JVMs with the output of
// binutils.
func TestCFIAgainstReadelf(t *testing.T) {
	jvmtest.NotQuick(t, jvmtest.StartsTool)
	readelf, err := exec.LookPath("readelf")
	if err != nil {
		t.Skip("readelf (Debian: binutils) is not installed")
	}
	for _, file := range oracleFiles(t, slices.Collect(maps.Keys(readelfNames))...) {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			compareWithReadelf(t, readelf, file)
		})
	}
}

// oracleFiles are large real libraries for one of these CPUs: the libraries of this machine, and arm64's libc if a
// compiler for arm64 is installed. In make quick, JDKs' libraries are left out, so that its time does not depend on the
// installed JDKs.
func oracleFiles(t testing.TB, machines ...elf.Machine) []string {
	patterns := []string{
		"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6",
		"/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
		"/lib/aarch64-linux-gnu/libc.so.6", "/usr/aarch64-linux-gnu/lib/libc.so.6",
	}
	if !testing.Short() {
		patterns = append(patterns, "/usr/lib/jvm/*/lib/server/libjvm.so", "/usr/lib/jvm/*/jre/lib/*/server/libjvm.so")
	}
	var files []string
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern)
		for _, file := range found {
			if real, err := filepath.EvalSymlinks(file); err == nil && !contains(files, real) {
				if f, err := elf.Open(real); err == nil {
					if slices.Contains(machines, f.Machine) {
						files = append(files, real)
					}
					f.Close()
				}
			}
		}
	}
	if len(files) == 0 {
		t.Skip("neither libc.so.6 nor libjvm.so is where Debian and Fedora put it")
	}
	return files
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func loadELF(t testing.TB, path string) *elfFile {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	st, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := readELF(file, st.Size(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func loadCFI(t testing.TB, path string) *cfiTable {
	t.Helper()
	table, err := readCFI(loadELF(t, path))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func compareWithReadelf(t *testing.T, readelf, file string) {
	elfFile, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer elfFile.Close()
	names := readelfNames[elfFile.Machine]
	table := loadCFI(t, file)
	if table.pairs == nil {
		t.Error("the linker's search table was not used")
	}
	linear := &cfiTable{frames: table.frames, framesAddr: table.framesAddr}
	if err := linear.buildIndex(); err != nil {
		t.Fatal(err)
	}
	// -N: without the debug file that the library may link to.
	cmd := exec.Command(readelf, "-wNF", file)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var m cfiMachine
	rows, wrong := 0, 0
	readelfRows(bufio.NewReader(out), func(loc uint64, columns, values []string) {
		rows++
		for _, table := range []*cfiTable{table, linear} {
			row, err := table.row(loc, &m)
			if err == nil {
				err = sameRow(row, names, columns, values)
			}
			if err != nil {
				if wrong++; wrong < 20 {
					t.Errorf("%#x: %v", loc, err)
				}
			}
		}
	})
	cmd.Wait()
	t.Logf("%d rows", rows)
	if rows < 500 {
		t.Errorf("only %d rows were compared", rows)
	}
	if wrong > 0 {
		t.Errorf("%d wrong", wrong)
	}
}

// readelfRows reads the output of readelf -wF. A block consists of an FDE's range, the names of the columns, and the
// rows.
func readelfRows(r interface{ ReadString(byte) (string, error) }, each func(loc uint64, columns, values []string)) {
	var columns, held []string
	var heldLoc, end uint64
	flush := func() {
		if held != nil && heldLoc < end {
			each(heldLoc, columns, held)
		}
		held = nil
	}
	for {
		line, err := r.ReadString('\n')
		f := strings.Fields(line)
		switch {
		case len(f) == 0 || f[len(f)-1] == "CIE" || len(f) > 3 && f[3] == "CIE":
			if len(f) > 0 {
				flush()
				end = 0 // rows of a CIE belong to no function
			}
		case len(f) > 5 && f[3] == "FDE":
			flush()
			_, last, _ := strings.Cut(f[5], "..")
			end, _ = strconv.ParseUint(last, 16, 64)
		case f[1] == "ZERO": // the section's end
		case f[0] == "LOC":
			columns = f[2:]
		default:
			loc, parseErr := strconv.ParseUint(f[0], 16, 64)
			if parseErr != nil || len(f) != len(columns)+2 {
				break
			}
			if loc != heldLoc { // if several rows have one address, the last one counts
				flush()
			}
			held, heldLoc = f[1:], loc
		}
		if err != nil {
			flush()
			return
		}
	}
}

var thisMachine = cpus.Here().Machine

// readelfNames are readelf's names of registers, by DWARF number.
var readelfNames = map[elf.Machine][]string{
	elf.EM_X86_64: strings.Fields("rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 ra"),
	elf.EM_AARCH64: strings.Fields("x0 x1 x2 x3 x4 x5 x6 x7 x8 x9 x10 x11 x12 x13 x14 x15 x16 x17 x18 x19 x20 x21 x22 " +
		"x23 x24 x25 x26 x27" +
		" x28 x29 ra sp"),
}

func sameRow(row *Row, names, columns, values []string) error {
	cfa := "exp"
	if row.CFA.Kind == RuleRegister {
		cfa = fmt.Sprintf("%s%+d", names[row.CFA.Reg], row.CFA.Off)
	}
	if cfa != values[0] {
		return fmt.Errorf("CFA is %s, want %s", cfa, values[0])
	}
	saved := map[string]Rule{}
	for _, s := range row.Saved {
		if int(s.Reg) < len(names) {
			saved[names[s.Reg]] = s.Rule
		}
	}
	for i, column := range columns {
		if !slices.Contains(names, column) {
			continue // a vector register
		}
		rule, ok := saved[column]
		delete(saved, column)
		got := "u"
		switch {
		case !ok && values[i+1] == "s":
			got = "s"
		case !ok || rule.Kind == RuleUndefined:
		case rule.Kind == RuleOffset:
			got = fmt.Sprintf("c%+d", rule.Off)
		case rule.Kind == RuleValOffset:
			got = fmt.Sprintf("v%+d", rule.Off)
		case rule.Kind == RuleExpr:
			got = "exp"
		case rule.Kind == RuleValExpr:
			got = "vexp"
		case rule.Kind == RuleRegister:
			got = names[rule.Reg]
		}
		if got != values[i+1] {
			return fmt.Errorf("%s is %s, want %s", column, got, values[i+1])
		}
	}
	for name := range saved {
		return fmt.Errorf("a rule for %s that is not there", name)
	}
	return nil
}
