package vmstructs

// stream reads HotSpot's compressed integers from a byte slice (utilities/unsigned5.hpp since 20,
// code/compressedStream.hpp before).
//
// UNSIGNED5 writes a number in one to five bytes. X is the number of byte values that are never written: since JDK 20
// it is 1 (no zero bytes), before it is 0. A byte below 192 (X+L in the source, with L = 192-X) ends the number. After
// any other byte, another one follows. Byte i adds (b-X) << 6i.
type stream struct {
	b   []byte
	pos int
	x   uint8
	bad bool // it ended in the middle of a number, or has a byte that is never written
}

const unsigned5MaxBytes = 5

// u5 reads the next number. If there is none, it sets s.bad and returns 0.
func (s *stream) u5() uint32 {
	var sum uint32
	for i := range unsigned5MaxBytes {
		if s.pos >= len(s.b) || s.pos < 0 {
			s.bad = true
			return 0
		}
		b := s.b[s.pos]
		if b < s.x {
			s.bad = true
			return 0
		}
		s.pos++
		sum += uint32(b-s.x) << (6 * i)
		if b < 192 { // X+L
			break
		}
	}
	return sum
}

// s5 reads a signed number (zigzag), whose lowest bit is the sign.
func (s *stream) s5() int32 {
	v := s.u5()
	return int32(v>>1) ^ -int32(v&1)
}

func (s *stream) u8() uint8 {
	if s.pos >= len(s.b) || s.pos < 0 {
		s.bad = true
		return 0
	}
	b := s.b[s.pos]
	s.pos++
	return b
}
