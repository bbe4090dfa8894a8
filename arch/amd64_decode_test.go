package arch

import (
	"debug/elf"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDecodeX86AgainstObjdump holds every instruction length in the text of libjvm and
// libc against binutils.
func TestDecodeX86AgainstObjdump(t *testing.T) {
	if _, err := exec.LookPath("objdump"); err != nil {
		t.Skip("objdump (Debian: binutils) is not installed")
	}
	files, _ := filepath.Glob("/usr/lib/jvm/*/lib/server/libjvm.so")
	libc, _ := filepath.Glob("/lib/x86_64-linux-gnu/libc.so.6")
	files = append(files, libc...)
	if len(files) == 0 {
		t.Skip("neither libjvm.so nor libc.so.6 is where Debian puts it")
	}
	for _, file := range files {
		f, err := elf.Open(file)
		if err != nil || f.Machine != elf.EM_X86_64 {
			continue
		}
		f.Close()
		t.Run(file, func(t *testing.T) { compareWithObjdump(t, file) })
	}
}

func compareWithObjdump(t *testing.T, file string) {
	if _, err := os.Stat(file); err != nil {
		t.Skip(err)
	}
	cmd := exec.Command("sh", "-c", `objdump -d -w --section=.text "$0" | head -n 400000`, file)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	n, wrong := 0, 0
	for line := range strings.Lines(string(out)) {
		parts := strings.Split(line, "\t")
		if len(parts) < 3 || strings.Contains(parts[2], "(bad)") {
			continue
		}
		code, err := hex.DecodeString(strings.ReplaceAll(parts[1], " ", ""))
		if err != nil {
			continue
		}
		n++
		padded := append(append([]byte(nil), code...), 0x90, 0x90, 0x90, 0x90)
		var in x86Inst
		if !decodeX86(padded, &in) || in.Len != len(code) {
			if wrong++; wrong < 20 {
				t.Errorf("length %d, want %d: %s", in.Len, len(code), strings.TrimSpace(line))
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

// FuzzDecodeX86 decodes arbitrary bytes. What stands behind an instruction does not matter,
// and less than the instruction is none.
func FuzzDecodeX86(f *testing.F) {
	f.Add([]byte{0x48, 0x83, 0xc4, 0x10, 0x5d, 0xc3})
	f.Add([]byte{0x62, 0xf1, 0x7c, 0x48, 0x10, 0x44, 0x24, 0x01})
	f.Fuzz(func(t *testing.T, b []byte) {
		var in, again x86Inst
		for len(b) > 0 && decodeX86(b, &in) {
			if in.Len <= 0 || in.Len > 15 || in.Len > len(b) {
				t.Fatalf("length %d of %x", in.Len, b)
			}
			if in.Base >= 16 || in.RM >= 16 || in.Reg >= 16 || in.OpX >= 8 || in.Mod >= 4 {
				t.Fatalf("%+v of %x", in, b)
			}
			alone := append(append([]byte(nil), b[:in.Len]...), 0xcc, 0xcc, 0xcc, 0xcc)
			if !decodeX86(alone, &again) || again != in {
				t.Fatalf("%x is %+v, with other bytes behind it %+v", b[:in.Len], in, again)
			}
			if decodeX86(b[:in.Len-1], &again) {
				t.Fatalf("%x is an instruction of %d bytes, without the last one of %d", b[:in.Len], in.Len, again.Len)
			}
			b = b[in.Len:]
		}
	})
}
