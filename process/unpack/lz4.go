package unpack

import (
	"encoding/binary"
	"errors"
	"io"
)

// lz4Magic begins a frame (lz4 project, doc/lz4_Frame_format.md).
var lz4Magic = []byte{0x04, 0x22, 0x4d, 0x18}

var errLZ4 = errors.New("lz4: malformed")

const (
	// lz4Window is the largest distance of a match. It may reach into the previous block.
	lz4Window = 64 << 10
	lz4Most   = 4 << 20 // the largest block
)

// lz4Reader unpacks lz4 frames. It does not verify checksums, because a reader of a damaged core needs all that can be
// read.
type lz4Reader struct {
	from  io.Reader
	block int  // the largest size of an unpacked block; 0: not in a frame
	sums  bool // each block is followed by its checksum
	sum   bool // the frame is followed by a checksum
	in    []byte
	out   []byte // the window, then the block
	at    int    // the offset in out of the next bytes to return
	err   error
}

func newLZ4(r io.Reader) *lz4Reader { return &lz4Reader{from: r, in: make([]byte, lz4Most)} }

func (r *lz4Reader) Read(b []byte) (int, error) {
	for r.at == len(r.out) && r.err == nil {
		r.err = r.next()
	}
	if r.at == len(r.out) {
		return 0, r.err
	}
	n := copy(b, r.out[r.at:])
	r.at += n
	return n, nil
}

func (r *lz4Reader) next() error {
	if r.block == 0 {
		if err := r.begin(); err != nil {
			return err
		}
	}
	head, err := r.word()
	if err != nil {
		return err
	}
	if head == 0 { // the end of the frame
		r.block = 0
		if r.sum {
			_, err = r.word()
		}
		return err
	}
	size := int(head &^ (1 << 31))
	if size > r.block {
		return errLZ4
	}
	if _, err := io.ReadFull(r.from, r.in[:size]); err != nil {
		return unexpected(err)
	}
	if r.sums {
		if _, err := r.word(); err != nil {
			return err
		}
	}
	if keep := len(r.out) - lz4Window; keep > 0 {
		r.out = r.out[:copy(r.out, r.out[keep:])]
	}
	r.at = len(r.out)
	if head>>31 == 1 { // not compressed
		r.out = append(r.out, r.in[:size]...)
		return nil
	}
	r.out, err = appendLZ4(r.out, r.in[:size], r.at+r.block)
	return err
}

func (r *lz4Reader) begin() error {
	var b [15]byte
	if _, err := io.ReadFull(r.from, b[:6]); err != nil {
		return err // io.EOF: there is no other frame
	}
	flags := b[4]
	if [4]byte(b[:4]) != [4]byte(lz4Magic) || flags>>6 != 1 || flags&1 != 0 { // dictionaries are not supported
		return errLZ4
	}
	rest := 1 // the header's checksum
	if flags&8 != 0 {
		rest += 8 // the size of the content
	}
	if _, err := io.ReadFull(r.from, b[6:6+rest]); err != nil {
		return unexpected(err)
	}
	size := b[5] >> 4 & 7
	if size < 4 {
		return errLZ4
	}
	r.block, r.sums, r.sum = 1<<(8+2*uint(size)), flags&16 != 0, flags&4 != 0
	r.out, r.at = r.out[:0], 0
	return nil
}

func (r *lz4Reader) word() (uint32, error) {
	var b [4]byte
	if _, err := io.ReadFull(r.from, b[:]); err != nil {
		return 0, unexpected(err)
	}
	return binary.LittleEndian.Uint32(b[:]), nil
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// appendLZ4 unpacks a block (doc/lz4_Block_format.md): runs of literal bytes, each followed by the distance and length
// of a match. out may grow up to most bytes.
func appendLZ4(out, in []byte, most int) ([]byte, error) {
	for len(in) > 0 {
		token := in[0]
		literals, rest, ok := lz4Length(int(token>>4), in[1:])
		if !ok || literals > len(rest) || literals > most-len(out) {
			return out, errLZ4
		}
		out = append(out, rest[:literals]...)
		if in = rest[literals:]; len(in) == 0 {
			return out, nil // the last run has no match
		}
		if len(in) < 2 {
			return out, errLZ4
		}
		back := int(binary.LittleEndian.Uint16(in))
		n, rest, ok := lz4Length(int(token&15), in[2:])
		n += 4
		if !ok || back == 0 || back > len(out) || n > most-len(out) {
			return out, errLZ4
		}
		in = rest
		for from := len(out) - back; n > 0; { // a match may overlap the bytes that it produces
			k := min(n, len(out)-from)
			out = append(out, out[from:from+k]...)
			from, n = from+k, n-k
		}
	}
	return out, nil
}

// lz4Length reads the rest of a length that did not fit into four bits.
func lz4Length(n int, in []byte) (length int, rest []byte, ok bool) {
	if n < 15 {
		return n, in, true
	}
	for i, b := range in {
		n += int(b)
		if n > lz4Most {
			return 0, nil, false
		}
		if b < 255 {
			return n, in[i+1:], true
		}
	}
	return 0, nil, false
}
