package vmstructs

import "testing"

func TestUnsigned5(t *testing.T) {
	for _, c := range []struct {
		name  string
		x     uint8
		bytes []byte
		want  uint32
		rest  int
		bad   bool
	}{
		{"zero", 0, []byte{0}, 0, 0, false},
		{"zero, zero excluded", 1, []byte{1}, 0, 0, false},
		{"largest of one byte", 0, []byte{191}, 191, 0, false},
		{"largest of one byte, zero excluded", 1, []byte{191}, 190, 0, false},
		{"smallest of two", 0, []byte{192, 0}, 192, 0, false},
		{"smallest of two, zero excluded", 1, []byte{192, 1}, 191, 0, false},
		{"two bytes", 0, []byte{0xc8, 0x02, 9}, 200 + 2<<6, 1, false},
		{"five bytes hold any number", 0, []byte{0xff, 0xff, 0xff, 0xff, 0xbf}, 255 + 255<<6 + 255<<12 + 255<<18 + 191<<24, 0,
			false},
		{"the fifth ends whatever it is", 0, []byte{192, 192, 192, 192, 192, 7}, 0xc30c30c0, 1, false},
		{"ends early", 0, []byte{192}, 0, 0, true},
		{"nothing", 0, nil, 0, 0, true},
		{"excluded byte", 1, []byte{0}, 0, 1, true},
		{"excluded byte behind", 1, []byte{200, 0}, 0, 1, true},
	} {
		s := stream{b: c.bytes, x: c.x}
		got := s.u5()
		if got != c.want || s.bad != c.bad || len(c.bytes)-s.pos != c.rest {
			t.Errorf("%s: %d, bad %v, %d left, want %d, %v, %d", c.name, got, s.bad, len(c.bytes)-s.pos, c.want, c.bad, c.rest)
		}
	}
}

func TestSigned5(t *testing.T) {
	for v, want := range map[byte]int32{0: 0, 1: -1, 2: 1, 3: -2, 190: 95, 191: -96} {
		s := stream{b: []byte{v}}
		if got := s.s5(); got != want {
			t.Errorf("%d: %d, want %d", v, got, want)
		}
	}
}

// appendU5 writes a number as HotSpot's UNSIGNED5::write_uint does.
func appendU5(b []byte, v uint32, x uint8) []byte {
	low := uint32(192) - uint32(x)
	for i := 0; ; i++ {
		if v < low || i == 4 {
			return append(b, byte(v)+x)
		}
		v -= low
		b = append(b, byte(192+v%64))
		v >>= 6
	}
}

func TestUnsigned5RoundTrip(t *testing.T) {
	for _, x := range []uint8{0, 1} {
		for v := uint64(0); v < 1<<32; v += 1 + v/3 {
			s := stream{b: appendU5(nil, uint32(v), x), x: x}
			if got := s.u5(); got != uint32(v) || s.bad || s.pos != len(s.b) {
				t.Fatalf("x %d: %d reads as %d", x, v, got)
			}
		}
	}
}
