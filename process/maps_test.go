package process

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseMaps(t *testing.T) {
	const rx = PermRead | PermExec
	for _, c := range []struct {
		name, line string
		want       Mapping
	}{
		{"library", "7f0-8f0 r-xp 00001000 fe:01 1234                       /usr/lib/libc.so.6",
			Mapping{0x7f0, 0x8f0, rx, 0x1000, 0xfe<<32 | 1, 1234, "/usr/lib/libc.so.6", false}},
		{"anonymous", "1000-2000 rw-p 00000000 00:00 0 ",
			Mapping{0x1000, 0x2000, PermRead | PermWrite, 0, 0, 0, "", false}},
		{"anonymous, trimmed", "1000-2000 ---p 00000000 00:00 0",
			Mapping{0x1000, 0x2000, 0, 0, 0, 0, "", false}},
		{"deleted", "1000-2000 r-xp 00000000 08:01 5   /opt/a.so (deleted)",
			Mapping{0x1000, 0x2000, rx, 0, 8<<32 | 1, 5, "/opt/a.so", true}},
		{"memfd", "1000-2000 rwxs 00000000 00:01 77   /memfd:jit code (deleted)",
			Mapping{0x1000, 0x2000, rx | PermWrite | PermShared, 0, 1, 77, "/memfd:jit code", true}},
		{"spaces", "1000-2000 r--p 00000000 08:01 5   /my  jdk /lib x.so ",
			Mapping{0x1000, 0x2000, PermRead, 0, 8<<32 | 1, 5, "/my  jdk /lib x.so ", false}},
		{"newline", `1000-2000 r--p 00000000 08:01 5   /a\012b.so`,
			Mapping{0x1000, 0x2000, PermRead, 0, 8<<32 | 1, 5, "/a\nb.so", false}},
		{"backslash", `1000-2000 r--p 00000000 08:01 5   /a\134b\n`,
			Mapping{0x1000, 0x2000, PermRead, 0, 8<<32 | 1, 5, `/a\134b\n`, false}},
		{"vdso", "7ffc0000-7ffc2000 r-xp 00000000 00:00 0       [vdso]",
			Mapping{0x7ffc0000, 0x7ffc2000, rx, 0, 0, 0, "[vdso]", false}},
		{"named anonymous", "1000-2000 rw-p 00000000 00:00 0   [anon:heap (deleted)]",
			Mapping{0x1000, 0x2000, PermRead | PermWrite, 0, 0, 0, "[anon:heap (deleted)]", false}},
		{"vsyscall", "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0   [vsyscall]",
			Mapping{0xffffffffff600000, 0xffffffffff601000, PermExec, 0, 0, 0, "[vsyscall]", false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ms, err := ParseMaps(strings.NewReader(c.line + "\n"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]Mapping{c.want}, ms); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, bad := range []string{
		"x", "1000 r-xp 0 0:0 0", "1000-1000 r-xp 0 0:0 0", "2000-1000 r-xp 0 0:0 0", "1000-2000 r-x 0 0:0 0",
		"1000-2000 r-xp z 0:0 0", "1000-2000 r-xp 0 00 0", "1000-2000 r-xp 0 0:0 -5", "11111111111111111-2 r-xp 0 0:0 0", "",
	} {
		if _, err := ParseMaps(strings.NewReader(bad + "\n")); !errors.Is(err, errMapsLine) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestParseMapsIsBounded(t *testing.T) {
	var b strings.Builder
	for i := range maxMappings + 5 {
		fmt.Fprintf(&b, "%x-%x r--p 0 0:0 0\n", i*4096+4096, i*4096+8192)
	}
	ms, err := ParseMaps(strings.NewReader(b.String()))
	if len(ms) != maxMappings || !errors.Is(err, ErrTooLong) {
		t.Errorf("%d mappings, %v", len(ms), err)
	}
	long := "1000-2000 r--p 0 0:0 5 /" + strings.Repeat("x", maxMapsLine)
	if _, err := ParseMaps(strings.NewReader(long)); !errors.Is(err, ErrTooLong) {
		t.Errorf("a long line: %v", err)
	}
}

func TestGroupImages(t *testing.T) {
	const text = `1000-2000 r--p 00000000 08:01 5 /lib/a.so
2000-3000 r-xp 00001000 08:01 5 /lib/a.so
3000-4000 rw-p 00002000 08:01 5 /lib/a.so
4000-5000 rw-p 00000000 00:00 0
5000-6000 r--p 00000000 08:01 9 /usr/share/data
6000-7000 r--p 00000000 08:01 5 /lib/a.so
7000-8000 r-xp 00001000 08:01 5 /lib/a.so
8000-9000 r--p 00000000 08:01 5 /lib/a.so
9000-a000 r-xp 00001000 08:01 5 /lib/a.so
a000-b000 r-xp 00000000 08:02 5 /lib/b.so (deleted)
b000-c000 rwxp 00000000 00:00 0
c000-d000 r-xp 00000000 00:00 0 [vdso]
d000-e000 --xp 00000000 00:00 0 [vsyscall]
`
	ms, err := ParseMaps(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var got []Image
	for _, g := range groupImages(ms, maxMappings) {
		got = append(got, g.Image)
	}
	want := []Image{
		{"a.so", "/lib/a.so", 0x1000, 0x4000, 0x1000},
		{"a.so", "/lib/a.so", 0x6000, 0x8000, 0x6000}, // the same file, loaded again
		{"a.so", "/lib/a.so", 0x8000, 0xa000, 0x8000}, // and again, directly after it
		{"b.so", "/lib/b.so", 0xa000, 0xb000, 0xa000},
		{"[vdso]", "[vdso]", 0xc000, 0xd000, 0xc000},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzMaps(f *testing.F) {
	f.Fuzz(func(t *testing.T, b []byte) {
		ms, _ := ParseMaps(strings.NewReader(string(b)))
		end := uint64(0)
		for i := range ms {
			m := &ms[i]
			if m.Start < end || m.End <= m.Start {
				t.Fatalf("mapping %d is out of order: %+v", i, m)
			}
			end = m.End
			if found, ok := findMapping(ms, m.End-1); !ok || found != m {
				t.Fatalf("mapping %d is not found", i)
			}
		}
		for _, g := range groupImages(ms, maxMappings) {
			if len(g.exec) == 0 || g.Start >= g.End {
				t.Fatalf("%+v", g)
			}
			g.mappedSize()
		}
		again, err := ParseMaps(strings.NewReader(mapsText(ms)))
		if diff := cmp.Diff(ms, again); err != nil || diff != "" {
			t.Fatalf("%v\n%s", err, diff)
		}
	})
}

// mapsText writes mappings as the kernel does.
func mapsText(ms []Mapping) string {
	var b strings.Builder
	for i := range ms {
		m := &ms[i]
		perm := []byte("---p")
		for k, c := range []byte("rwxs") {
			if m.Perm&(1<<k) != 0 {
				perm[k] = c
			}
		}
		path := strings.ReplaceAll(m.Path, "\n", `\012`)
		if m.Deleted {
			path += " (deleted)"
		}
		fmt.Fprintf(&b, "%x-%x %s %x %x:%x %d %s\n", m.Start, m.End, perm, m.Offset, m.Dev>>32, uint32(m.Dev), m.Inode, path)
	}
	return b.String()
}
