//go:build linux

package process

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// markerBytes is a note as sys/sdt.h makes it.
func markerBytes(at, base, semaphore uint64, texts string) []byte {
	desc := binary.LittleEndian.AppendUint64(nil, at)
	desc = binary.LittleEndian.AppendUint64(desc, base)
	desc = append(binary.LittleEndian.AppendUint64(desc, semaphore), texts...)
	b := binary.LittleEndian.AppendUint32(nil, 8)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(desc)))
	b = append(binary.LittleEndian.AppendUint32(b, 3), "stapsdt\x00"...)
	b = append(b, desc...)
	return append(b, make([]byte, -len(b)&3)...)
}

func TestParseMarkers(t *testing.T) {
	good := markerBytes(0x1000, 0x9000, 0, "hotspot\x00gc__begin\x001@%dil\x00")
	other := []byte("\x04\x00\x00\x00\x04\x00\x00\x00\x03\x00\x00\x00GNU\x00\x01\x02\x03\x04")
	guarded := markerBytes(0x2000, 0x9000, 0x5000, "p\x00n\x00\x00")
	want := []markerNote{{0x1000, 0x9000, 0, "hotspot", "gc__begin"}, {0x2000, 0x9000, 0x5000, "p", "n"}}
	const otherType = "\x08\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\x00stapsdt\x00"
	for name, c := range map[string]struct {
		b    []byte
		want []markerNote
	}{
		"two and another":   {slices.Concat(other, good, guarded), want},
		"cut":               {slices.Concat(good, guarded[:len(guarded)-4]), want[:1]},
		"no third text":     {markerBytes(1, 2, 0, "p\x00n"), nil},
		"no addresses":      {markerBytes(0, 0, 0, "")[:12+8+20], nil},
		"not a name":        {markerBytes(1, 2, 0, "p\x1b[2J\x00n\x00\x00"), nil},
		"an empty name":     {markerBytes(1, 2, 0, "p\x00\x00\x00"), nil},
		"too long a name":   {markerBytes(1, 2, 0, "p\x00"+strings.Repeat("n", maxMarkerName+1)+"\x00\x00"), nil},
		"more than memory":  {[]byte("\xff\xff\xff\xff\xff\xff\xff\xff\x03\x00\x00\x00stapsdt\x00"), nil},
		"nothing":           {nil, nil},
		"another type":      {append([]byte(otherType), good...), want[:1]},
		"an owner too long": {[]byte("\x09\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00stapsdt\x00\x00\x00\x00\x00"), nil},
	} {
		if got := parseMarkers(c.b); !slices.Equal(got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// FuzzMarkers: for any notes, the names can be shown, and there are no more notes than fit into the bytes.
func FuzzMarkers(f *testing.F) {
	f.Add(markerBytes(0x1000, 0x9000, 0, "hotspot\x00gc__begin\x001@%dil\x00"))
	f.Add(append(markerBytes(1, 2, 3, "a\x00b\x00c\x00"), "\x04\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00GNU\x00"...))
	f.Fuzz(func(t *testing.T, b []byte) {
		list := parseMarkers(b)
		if len(list) > len(b)/40 {
			t.Fatalf("%d notes of %d bytes", len(list), len(b))
		}
		for _, n := range list {
			if !isMarkerName([]byte(n.provider)) || !isMarkerName([]byte(n.name)) {
				t.Fatalf("%+v", n)
			}
		}
	})
}
