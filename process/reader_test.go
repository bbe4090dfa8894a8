package process

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// arrayMemory is one mapped range of memory.
type arrayMemory struct {
	base uint64
	data []byte
}

func (m *arrayMemory) Read(addr uint64, p []byte) error {
	if addr < m.base || addr-m.base > uint64(len(m.data)) || uint64(len(m.data))-(addr-m.base) < uint64(len(p)) {
		return ErrFault
	}
	copy(p, m.data[addr-m.base:])
	return nil
}

func (m *arrayMemory) ReadMany(rs []Range) {
	for i := range rs {
		rs[i].OK = m.Read(rs[i].Addr, rs[i].Buf) == nil
	}
}

func TestReaderNumbers(t *testing.T) {
	m := &arrayMemory{base: 0x1000, data: make([]byte, 16)}
	binary.LittleEndian.PutUint64(m.data, 0xfedcba9876543210)
	r := NewReader(m)
	if v, err := r.U8(0x1000); v != 0x10 || err != nil {
		t.Errorf("U8 = %#x, %v", v, err)
	}
	if v, err := r.U16(0x1000); v != 0x3210 || err != nil {
		t.Errorf("U16 = %#x, %v", v, err)
	}
	if v, err := r.U32(0x1000); v != 0x76543210 || err != nil {
		t.Errorf("U32 = %#x, %v", v, err)
	}
	if v, err := r.U64(0x1000); v != 0xfedcba9876543210 || err != nil {
		t.Errorf("U64 = %#x, %v", v, err)
	}
	if v, err := r.I32(0x1004); v != -0x1234568 || err != nil {
		t.Errorf("I32 = %#x, %v", v, err)
	}
	if _, err := r.U64(0x1009); !errors.Is(err, ErrFault) {
		t.Errorf("U64 across the end: %v, want ErrFault", err)
	}
}

func TestReaderCString(t *testing.T) {
	long := strings.Repeat("x", 700)
	for _, c := range []struct {
		name string
		mem  string
		at   uint64 // the beginning of the memory; nothing is mapped after its end
		max  int
		want string
		err  error
	}{
		{"plain", "libjvm\x00rest", 0x1000, 100, "libjvm", nil},
		{"empty", "\x00", 0x1000, 100, "", nil},
		{"ends with the last mapped page", "main\x00", 0x1ffb, 100, "main", nil},
		{"crosses a page", "crossing\x00" + long, 0x1ffa, 100, "crossing", nil},
		{"longer than the scratch", long + "\x00" + long, 0x1000, 1000, long, nil},
		{"exactly max", "abcd\x00" + long, 0x1000, 4, "abcd", nil},
		{"one above max", "abcde\x00" + long, 0x1000, 4, "", ErrTooLong},
		{"never ends", long + long, 0x1000, 500, "", ErrTooLong},
		{"runs into unmapped memory", strings.Repeat("y", 5), 0x1ffb, 100, "", ErrFault},
	} {
		t.Run(c.name, func(t *testing.T) {
			mem := []byte(c.mem)
			if c.err == nil && len(mem) < 512 && c.at%4096+uint64(len(mem)) < 4096 {
				mem = append(mem, make([]byte, 512)...) // the page continues
			}
			r := NewReader(&arrayMemory{base: c.at, data: mem})
			got, err := r.CString(c.at, c.max)
			if !errors.Is(err, c.err) || err == nil && got != c.want {
				t.Errorf("got %q, %v; want %q, %v", got, err, c.want, c.err)
			}
		})
	}
}

func TestReaderDoesNotAllocate(t *testing.T) {
	r := NewReader(&arrayMemory{base: 0x1000, data: make([]byte, 4096)})
	dst := make([]byte, 0, 64)
	n := testing.AllocsPerRun(100, func() {
		r.U64(0x1008)
		dst, _ = r.AppendCString(dst[:0], 0x1010, 32)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
