package arm64

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"iter"
	"math/bits"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"goprof/arch"
	"goprof/testdata/jvmtest"
)

// disassembled is an instruction as objdump prints it.
type disassembled struct {
	code []byte
	text string
}

// disassembly yields instructions as objdump prints them: 300,000 of libc, as many of each file in GOPROF_ARM64_ELF,
// and as many random words.
func disassembly(t *testing.T) iter.Seq[disassembled] {
	jvmtest.NotQuick(t, jvmtest.StartsTool)
	objdump := ""
	for _, name := range []string{"aarch64-linux-gnu-objdump", "objdump"} {
		if out, err := exec.Command(name, "--info").Output(); err == nil && bytes.Contains(out, []byte("aarch64")) {
			objdump = name
			break
		}
	}
	if objdump == "" {
		t.Skip("no objdump knows aarch64 (Debian: binutils-aarch64-linux-gnu)")
	}
	words := make([]byte, 0, 4*madeUpWords)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range madeUpWords {
		words = binary.LittleEndian.AppendUint32(words, rnd.Uint32())
	}
	madeUp := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(madeUp, words, 0o600); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("/usr/aarch64-linux-gnu/lib/libc.so.6")
	files = append(files, filepath.SplitList(os.Getenv("GOPROF_ARM64_ELF"))...)
	commands := [][]string{{"-D", "-b", "binary", "-m", "aarch64", madeUp}}
	for _, file := range files {
		commands = append(commands, []string{"-d", "--section=.text", file})
	}
	return func(yield func(disassembled) bool) {
		for _, args := range commands {
			cmd := exec.Command("sh", append([]string{"-c", `o=$1; shift; "$o" -z "$@" | head -n 300000`, "sh", objdump},
				args...)...)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(out)) {
				parts := strings.Split(line, "\t")
				if len(parts) < 3 {
					continue
				}
				word, err := strconv.ParseUint(strings.TrimSpace(parts[1]), 16, 32)
				if err != nil {
					continue
				}
				text, _, _ := strings.Cut(strings.Join(parts[2:], " "), "//")
				text, _, _ = strings.Cut(text, "<")
				code := binary.LittleEndian.AppendUint32(nil, uint32(word))
				if !yield(disassembled{code, strings.TrimSpace(text)}) {
					return
				}
			}
		}
	}
}

const madeUpWords = 200000

// undefined matches words that objdump does not know, or knows only as data.
var undefined = regexp.MustCompile(`^(\.inst|\.word|udf|undefined|.*NYI)`)

// Some instructions only read their first operands. Some write both of their first two.
var (
	reads = regexp.MustCompile(`^(st(r|p|ur|nr|np|lr|llr|lur|tr|g|zg|2g|z2g|gp|gm|zgm|1|2|3|4|64b)[a-z0-9]*|st(add|clr|eor|set|smax|smin|umax|umin)l?[bh]?|cmp|cmn|tst|ccmp|ccmn|cbn?z|tbn?z|br|blr|ret|` +
		`b(l?r)a[ab]z?|prf.*|rprfm|msr|sys|dc|ic|at|tlbi|cfp|cpp|dvp|fcmp.*|fccmp.*|rmif|setf.*|ctermeq|ctermne|ptest|wfet|wfit|svc|hvc|smc|hlt|brk|dcps.|tcancel|cosp|cmpp)$`)
	atomic = regexp.MustCompile(`^(ld(add|clr|eor|set|[su]max|[su]min)|swp)`)
	two    = regexp.MustCompile(`^(ldp|ldnp|ldpsw|ldxp|ldaxp|casp[al]*)$`)
)

var register = regexp.MustCompile(`^(x|w)(\d+)$|^w?sp$`)

// written returns the general registers that an instruction writes, by objdump's text.
func written(text string) (regs uint32) {
	mnemonic, operands, _ := strings.Cut(text, " ")
	add := func(op string) {
		m := register.FindStringSubmatch(strings.TrimSpace(op))
		switch {
		case m == nil:
		case m[2] == "":
			regs |= 1 << 31
		default:
			n, _ := strconv.Atoi(m[2])
			regs |= 1 << n
		}
	}
	if strings.HasPrefix(mnemonic, "cpy") ||
		mnemonic != "setf8" && mnemonic != "setf16" && strings.HasPrefix(mnemonic, "set") && strings.Contains(operands, "!") {
		for _, op := range strings.Split(operands, ",") {
			add(strings.Trim(op, " []!"))
		}
		return regs
	}
	ops := strings.Split(operands, ",")
	inBase := strings.HasPrefix(ops[0], "[")
	if at := strings.LastIndexByte(operands, '['); at >= 0 {
		inside, after, _ := strings.Cut(operands[at+1:], "]")
		if strings.HasPrefix(after, "!") || strings.HasPrefix(after, ",") {
			register, _, _ := strings.Cut(inside, ",")
			add(register)
		}
	}
	if strings.HasPrefix(mnemonic, "stx") || strings.HasPrefix(mnemonic, "stlx") || mnemonic == "st64bv" ||
		mnemonic == "st64bv0" {
		add(ops[0]) // whether the store succeeded
		return regs
	}
	if inBase || reads.MatchString(mnemonic) || strings.HasPrefix(mnemonic, "b.") || strings.HasPrefix(mnemonic, "bc.") {
		return regs
	}
	if atomic.MatchString(mnemonic) {
		add(ops[1])
		return regs
	}
	add(ops[0])
	if two.MatchString(mnemonic) {
		add(ops[1])
	}
	if mnemonic == "ld64b" {
		first := bits.TrailingZeros32(regs)
		for i := range 8 {
			regs |= 1 << min(first+i, 30)
		}
	}
	return regs
}

// TestDecodeAgainstObjdump: if an instruction writes a register, the tracer no longer believes the register's old
// value. It still believes the values of all other registers.
func TestDecodeAgainstObjdump(t *testing.T) {
	checked, wrong := 0, 0
	for line := range disassembly(t) {
		var in inst
		if undefined.MatchString(line.text) {
			continue
		}
		if !decode(line.code, &in) {
			if !strings.HasPrefix(line.text, "z") && !isSME(line.code) {
				wrong++
				complain(t, wrong, "%x %s: not decoded", line.code, line.text)
			}
			continue
		}
		tr := tracer{java: CPU.Java}
		tr.Follower = &arch.Follower{Code: append(slices.Clone(line.code), make([]byte, 64)...)}
		var s arch.State
		s.Begin(0)
		if tr.Step(&s) != arch.WayGoesOn || in.Op == opCall || in.Op == opSign {
			continue
		}
		checked++
		var changed uint32
		for i, l := range s.Regs {
			if l != arch.RegPlus(uint8(i), 0) {
				changed |= 1 << i
			}
		}
		want := written(line.text)
		if in.Op == opMov && in.Rd == in.Rm || in.Op == opAdd && in.Rd == in.Rn && in.Imm == 0 ||
			in.Op == opAnd && in.Rd == in.Rn ||
			(in.Op == opAddReg || in.Op == opSubReg) && in.Rm == zr && in.Rd == in.Rn ||
			(in.Op == opLoad || in.Op == opStore) && in.Index != indexOffset && in.Imm == 0 && in.Index != indexPostReg &&
				in.Index != indexNoAddr {
			continue // the same value again
		}
		if strings.HasPrefix(line.text, "svc") {
			want = 1 << x0
		}
		if changed != want {
			wrong++
			complain(t, wrong, "%x %s: changes %s, want %s", line.code, line.text, set(changed), set(want))
		}
	}
	if checked < 50000 {
		t.Errorf("only %d instructions were looked at", checked)
	}
	t.Logf("%d instructions, %d wrong", checked, wrong)
}

func complain(t *testing.T, n int, format string, args ...any) {
	t.Helper()
	if n < 40 {
		t.Errorf(format, args...)
	}
}

func isSME(code []byte) bool {
	w := binary.LittleEndian.Uint32(code)
	return w>>31 == 1 && field(w, 25, 4) == 0
}

func set(regs uint32) string {
	var names []string
	for i := range 32 {
		if regs>>i&1 != 0 {
			names = append(names, fmt.Sprintf("x%d", i))
		}
	}
	return "{" + strings.Join(names, " ") + "}"
}

// FuzzDecode decodes any word. The result names only registers that exist.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"fd7bbfa9", "fd7bc1a8", "c0035fd6", "ff4300d1", "1f2003d5", "bf030091"} {
		b, _ := hex.DecodeString(s)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var in, again inst
		if decode(b, &in) && len(b) < 4 {
			t.Fatal("an instruction of less than four bytes")
		}
		if len(b) < 4 || !decode(b, &in) {
			return
		}
		for _, r := range []uint8{in.Rd, in.Rn, in.Rt2} {
			if r > 31 && r != zr {
				t.Fatalf("%x: %+v", b[:4], in)
			}
		}
		if !decode(b[:4], &again) || again != in {
			t.Fatalf("%x is %+v, alone %+v", b[:4], in, again)
		}
	})
}
