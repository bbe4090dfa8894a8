package protobuf

import (
	"bytes"
	"fmt"
	"testing"
)

func TestRoundTrip(t *testing.T) {
	var b []byte
	b = Uint(b, 1, 300)
	b = Uint(b, 2, 0)
	b = Fixed64(b, 3, 1<<40)
	b = String(b, 4, "text")
	b = String(b, 5, "")
	b = Text(b, 6, "")
	b = Packed(b, 7, []int64{-1, 0, 300})
	b = PackedFixed64(b, 8, []uint64{1})
	var got bytes.Buffer
	if err := Each(b, func(f Field) bool {
		fmt.Fprintf(&got, "%d=%d%q ", f.ID, f.Number, f.Data)
		return true
	}); err != nil {
		t.Fatal(err)
	}
	want := `1=300"" 3=1099511627776"" 4=0"text" 6=0"" 7=0"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\xac\x02" ` +
		`8=0"\x01\x00\x00\x00\x00\x00\x00\x00" `
	if got.String() != want {
		t.Errorf("%s\nwant %s", got.String(), want)
	}
}

func TestBad(t *testing.T) {
	for _, data := range []string{"\x0a", "\x0a\x05abc", "\x00\x01", "\x09\x01", "\x0b", "\x08\xff",
		"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"} {
		if err := Each([]byte(data), func(Field) bool { return true }); err == nil {
			t.Errorf("%q is taken", data)
		}
	}
}

func FuzzEach(f *testing.F) {
	f.Add([]byte("\x08\x01\x0a\x03abc"))
	f.Fuzz(func(t *testing.T, data []byte) {
		total := 0
		Each(data, func(f Field) bool { total += len(f.Data); return true })
		if total > len(data) {
			t.Errorf("%d bytes of %d", total, len(data))
		}
	})
}
