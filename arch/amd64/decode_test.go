package amd64

import (
	"debug/elf"
	"encoding/hex"
	"fmt"
	"iter"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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

// disassembly yields the instructions of libjvm and libc, 400,000 lines of each file.
func disassembly(t *testing.T) iter.Seq[disassembled] {
	jvmtest.NotQuick(t, jvmtest.StartsTool)
	if _, err := exec.LookPath("objdump"); err != nil {
		t.Skip("objdump (Debian: binutils) is not installed")
	}
	files, _ := filepath.Glob("/usr/lib/jvm/*/lib/server/libjvm.so")
	libc, _ := filepath.Glob("/lib/x86_64-linux-gnu/libc.so.6")
	files = slices.DeleteFunc(append(files, libc...), func(file string) bool {
		f, err := elf.Open(file)
		if err != nil {
			return true
		}
		defer f.Close()
		return f.Machine != elf.EM_X86_64
	})
	if len(files) == 0 {
		t.Skip("neither libjvm.so nor libc.so.6 is where Debian puts it")
	}
	return func(yield func(disassembled) bool) {
		for _, file := range files {
			cmd := exec.Command("sh", "-c", `objdump -d -w --section=.text "$0" | head -n 400000`, file)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(out)) {
				parts := strings.Split(line, "\t")
				if len(parts) < 3 || strings.Contains(parts[2], "(bad)") {
					continue
				}
				code, err := hex.DecodeString(strings.ReplaceAll(parts[1], " ", ""))
				if err == nil && !yield(disassembled{code, strings.TrimSpace(parts[2])}) {
					return
				}
			}
		}
	}
}

// TestDecodeAgainstObjdump compares the length of every instruction in the text of libjvm and libc with binutils'
// length.
func TestDecodeAgainstObjdump(t *testing.T) {
	n, wrong := 0, 0
	for line := range disassembly(t) {
		n++
		padded := append(slices.Clone(line.code), 0x90, 0x90, 0x90, 0x90)
		var in inst
		if !decode(padded, &in) || in.Len != len(line.code) {
			if wrong++; wrong < 20 {
				t.Errorf("length %d, want %d: %x %s", in.Len, len(line.code), line.code, line.text)
			}
		}
	}
	if n < 100000 {
		t.Errorf("only %d instructions were compared", n)
	}
	if wrong > 0 {
		t.Errorf("%d of %d instructions wrong", wrong, n)
	}
}

// registerNames are the general registers as objdump names them, by DWARF number and width.
var registerNames = func() map[string]uint8 {
	names := map[string]uint8{}
	for n, r := range map[string]uint8{"ax": rax, "bx": rbx, "cx": rcx, "dx": rdx, "si": rsi, "di": rdi, "bp": rbp,
		"sp": rsp} {
		names["%"+n], names["%e"+n], names["%r"+n] = r, r, r
		if n[1] == 'x' {
			names["%"+n[:1]+"l"] = r
		} else {
			names["%"+n+"l"] = r
		}
	}
	for i := range uint8(8) {
		for _, width := range []string{"", "d", "w", "b"} {
			names[fmt.Sprintf("%%r%d%s", 8+i, width)] = r8 + i
		}
	}
	return names
}()

// readers are instructions that do not write their last operand.
var readers = regexp.MustCompile(`^(cmp[bwlq]?|test[bwlq]?|push[wq]?|call[q]?|jmp[q]?|bt[wlq]?|nop[wl]?|i?mul[bwlq]?|i?div[bwlq]?|out|xchg|v?ptest|ud.*|wr[fg]sbase|int)$`)

// TestClobberAgainstObjdump: if an instruction writes a register, the tracer no longer believes the register's old
// value. In AT&T's notation the written register is the last operand.
func TestClobberAgainstObjdump(t *testing.T) {
	checked := 0
	for line := range disassembly(t) {
		mnemonic, operands, _ := strings.Cut(line.text, " ")
		for slices.Contains([]string{"lock", "rep", "repz", "repnz", "data16", "cs", "notrack", "bnd"}, mnemonic) {
			mnemonic, operands, _ = strings.Cut(strings.TrimSpace(operands), " ")
		}
		operands, _, _ = strings.Cut(strings.TrimSpace(operands), " ")
		last := operands[strings.LastIndexByte(operands, ',')+1:]
		reg, ok := registerNames[last]
		if !ok || readers.MatchString(mnemonic) && !(strings.HasPrefix(mnemonic, "imul") && strings.Contains(operands, ",")) {
			continue
		}
		same := operands == last+","+last || operands == "$0x0,"+last // mov %rdi,%rdi; add $0,%rdi
		aligns := strings.HasPrefix(mnemonic, "and") && reg == rsp
		tr := tracer{}
		tr.Follower = &arch.Follower{Code: append(slices.Clone(line.code), make([]byte, 64)...)}
		tr.Code[len(line.code)], tr.Code[len(line.code)+1] = 0x90, 0x90
		var s arch.State
		s.Begin(0)
		if way := tr.Step(&s); way != arch.WayGoesOn || same || aligns {
			continue
		}
		checked++
		if s.Regs[reg] == arch.RegPlus(reg, 0) {
			t.Errorf("%x %s: believes that %s is what it was", line.code, line.text, last)
		}
	}
	if checked < 50000 {
		t.Errorf("only %d instructions were looked at", checked)
	}
}

// FuzzDecode decodes arbitrary bytes. The bytes behind an instruction do not matter. A part of an instruction is no
// instruction.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3})
	f.Add([]byte{0x62, 0xf1, 0x7c, 0x48, 0x10, 0x44, 0x24, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		var in, again inst
		for len(b) > 0 && decode(b, &in) {
			if in.Len <= 0 || in.Len > 15 || in.Len > len(b) {
				t.Fatalf("length %d of %x", in.Len, b)
			}
			if in.Base >= 16 || in.RM >= 16 || in.Reg >= 16 || in.OpX >= 8 || in.Mod >= 4 {
				t.Fatalf("%+v of %x", in, b)
			}
			alone := append(append([]byte(nil), b[:in.Len]...), 0xcc, 0xcc, 0xcc, 0xcc)
			if !decode(alone, &again) || again != in {
				t.Fatalf("%x is %+v, with other bytes behind it %+v", b[:in.Len], in, again)
			}
			if decode(b[:in.Len-1], &again) {
				t.Fatalf("%x is an instruction of %d bytes, without the last one of %d", b[:in.Len], in.Len, again.Len)
			}
			b = b[in.Len:]
		}
	})
}
