package jfr

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// BadRecording says where a recording is damaged. All chunks before that position have been read.
type BadRecording struct {
	Offset  int64 // in the file
	Problem string
	// Incomplete: nothing is wrong, but the chunk that begins here is not complete. Its writer was killed, or is still
	// writing.
	Incomplete bool
	// TooMuch: nothing is wrong, but there is more than goprof reads.
	TooMuch bool
}

func (e *BadRecording) Error() string { return fmt.Sprintf("at byte %d: %s", e.Offset, e.Problem) }

// cursor reads numbers and strings from bytes of a file. The first error stays in bad. After an error every read
// returns zero and no bytes are left, so loops end.
type cursor struct {
	b     []byte
	at    int
	base  int64 // offset of b in the file
	steps int   // how many more fields may be read: fields without bytes would let a small file ask for any amount of work
	bad   *BadRecording
}

func newCursor(b []byte, base int64) (c cursor) {
	c.open(b, base)
	return c
}

// open sets a new cursor at the start of b. It does so in place because a copy of a cursor costs more than reading a
// few bytes: the CPU waits when it copies fields in other widths than they were just written in.
func (c *cursor) open(b []byte, base int64) { c.b, c.base, c.steps = b, base, stepsFor(len(b)) }

// stepsFor returns how many fields may be read from so many bytes. Each field takes at least one byte, except for
// structures and arrays.
func stepsFor(bytes int) int { return 4*bytes + 1<<12 }

func (c *cursor) fail(format string, args ...any) {
	if c.bad == nil {
		c.bad = &BadRecording{Offset: c.base + int64(c.at), Problem: fmt.Sprintf(format, args...)}
		c.at = len(c.b)
	}
}

// step counts one field. It returns false after an error, and if there were too many fields.
func (c *cursor) step() bool {
	if c.steps--; c.steps < 0 {
		c.fail("structures without end")
	}
	return c.bad == nil
}

func (c *cursor) left() int { return len(c.b) - c.at }

// int reads a number that appendInt has written. Most numbers are small.
func (c *cursor) int() uint64 {
	if at := c.at; at < len(c.b) && c.b[at] < 0x80 {
		c.at++
		return uint64(c.b[at])
	}
	return c.long()
}

func (c *cursor) long() (v uint64) {
	for i := range 9 {
		if c.at >= len(c.b) {
			c.fail("it ends within a number")
			return 0
		}
		b := c.b[c.at]
		c.at++
		if i == 8 {
			return v | uint64(b)<<56
		}
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			break
		}
	}
	return v
}

// goesOn has the highest bit of each of eight bytes. In a byte of a number, this bit means that the number continues.
const goesOn = 0x8080808080808080

// ends returns a bit for each of the next eight bytes that ends a number. It misses a number of nine bytes, because the
// last byte of such a number may have the highest bit.
func (c *cursor) ends(at int) uint64 { return ^binary.LittleEndian.Uint64(c.b[at:]) & goesOn }

func (c *cursor) skip(n int) {
	for n > 0 && c.bad == nil {
		many := c.skipFour(n)
		if many == 0 {
			many = c.skipOne(n)
		}
		n -= many
	}
}

// halves reports whether a number ends in each half of a word. Then no number has nine bytes, because such a number
// covers at least one half in which nothing ends.
func halves(ends uint64) bool { return uint32(ends) != 0 && ends>>32 != 0 }

// skipFour skips the numbers that end in the next four words, and returns how many it skipped. It skips none, and
// returns 0, if that would be too many, or if one of the numbers may have nine bytes.
func (c *cursor) skipFour(n int) int {
	if n < 32 || c.left() < 32 {
		return 0
	}
	w, x, y, z := c.ends(c.at), c.ends(c.at+8), c.ends(c.at+16), c.ends(c.at+24)
	if !halves(w) || !halves(x) || !halves(y) || !halves(z) {
		return 0
	}
	c.at += 24 + bits.Len64(z)/8
	return bits.OnesCount64(w | x>>1 | y>>2 | z>>3) // only the highest bit of each byte is used
}

// skipOne is skipFour for one word. If one word would be too much, it skips one number.
func (c *cursor) skipOne(n int) int {
	ends := uint64(0)
	if c.left() >= 8 {
		ends = c.ends(c.at)
	}
	many := bits.OnesCount64(ends)
	if many == 0 || many > n {
		c.int()
		return 1
	}
	c.at += bits.Len64(ends) / 8
	return many
}

// skipThree skips three numbers, all at once if they have no more than eight bytes together.
func (c *cursor) skipThree() {
	if c.left() >= 8 {
		ends := c.ends(c.at)
		ends &= ends - 1
		if ends &= ends - 1; ends != 0 {
			c.at += bits.TrailingZeros64(ends)/8 + 1
			return
		}
	}
	c.int()
	c.int()
	c.int()
}

// count reads the number of the following elements. Each element has at least bytesEach bytes.
func (c *cursor) count(bytesEach int) int {
	n := c.int()
	if n > uint64(c.left()/max(bytesEach, 1)) {
		c.fail("a count of %d, and %d bytes are left", n, c.left())
		return 0
	}
	return int(n)
}

// bytes returns the next n bytes, part of what the cursor reads.
func (c *cursor) bytes(n int) []byte {
	if n < 0 || n > c.left() {
		c.fail("%d bytes are missing", n-c.left())
		return nil
	}
	c.at += n
	return c.b[c.at-n : c.at]
}

func (c *cursor) byte() byte {
	if b := c.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// text is a string or, if pooled, the key of a string in the pool of strings.
type text struct {
	s      string
	key    uint64
	pooled bool
}

// text reads a string, or skips it.
func (c *cursor) text(skip bool) text { return c.textLike("", skip) }

// textLike is text, but if the string equals like, it returns like and allocates nothing.
func (c *cursor) textLike(like string, skip bool) (t text) {
	switch form := c.byte(); form {
	case stringNull, stringEmpty:
	case stringPool:
		t.key, t.pooled = c.int(), true
	case stringUTF8:
		if b := c.bytes(c.count(1)); string(b) == like {
			t.s = like
		} else if !skip {
			t.s = string(b)
		}
	case stringLatin1:
		if b := c.bytes(c.count(1)); !skip {
			t.s = latin1(b)
		}
	case stringChars:
		n := c.count(1)
		var units []uint16
		for range n {
			if u := uint16(c.int()); !skip && c.bad == nil {
				units = append(units, u)
			}
		}
		t.s = string(utf16.Decode(units))
	default:
		c.at--
		c.fail("a string of the unknown form %d", form)
	}
	return t
}

func latin1(b []byte) string {
	text := make([]byte, 0, len(b))
	for _, c := range b {
		text = utf8.AppendRune(text, rune(c))
	}
	return string(text)
}
