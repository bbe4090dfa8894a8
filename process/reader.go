package process

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Reader reads numbers and strings from the target's memory. It has its own scratch memory, so reads do not allocate.
// Each goroutine needs its own Reader.
//
// Both supported CPUs are little-endian.
type Reader struct {
	m       Memory
	scratch [256]byte
}

func NewReader(m Memory) *Reader { return &Reader{m: m} }

func (r *Reader) U8(addr uint64) (uint8, error) {
	if err := r.m.Read(addr, r.scratch[:1]); err != nil {
		return 0, err
	}
	return r.scratch[0], nil
}

func (r *Reader) U16(addr uint64) (uint16, error) {
	if err := r.m.Read(addr, r.scratch[:2]); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint16(r.scratch[:]), nil
}

func (r *Reader) U32(addr uint64) (uint32, error) {
	if err := r.m.Read(addr, r.scratch[:4]); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint32(r.scratch[:]), nil
}

func (r *Reader) U64(addr uint64) (uint64, error) {
	if err := r.m.Read(addr, r.scratch[:8]); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(r.scratch[:]), nil
}

func (r *Reader) I32(addr uint64) (int32, error) {
	v, err := r.U32(addr)
	return int32(v), err
}

func (r *Reader) Ptr(addr uint64) (uint64, error) { return r.U64(addr) }

func (r *Reader) Bytes(addr uint64, p []byte) error { return r.m.Read(addr, p) }

// CString reads a string that ends with a zero byte. A string longer than max bytes (without the zero) is an error,
// because it is probably not a string.
func (r *Reader) CString(addr uint64, max int) (string, error) {
	var small [128]byte
	b, err := r.AppendCString(small[:0], addr, max)
	return string(b), err
}

// AppendCString is like CString, but appends to memory that the caller reuses.
func (r *Reader) AppendCString(dst []byte, addr uint64, max int) ([]byte, error) {
	for n := 0; n <= max; {
		// A string may end directly before unmapped memory. So a chunk crosses into the next page only when the string is
		// known to continue there. All page sizes of Linux are multiples of 4 KB.
		chunk := min(len(r.scratch), int(4096-addr%4096))
		p := r.scratch[:chunk]
		if err := r.m.Read(addr, p); err != nil {
			return dst, err
		}
		if end := bytes.IndexByte(p, 0); end >= 0 {
			if n+end > max {
				break
			}
			return append(dst, p[:end]...), nil
		}
		dst = append(dst, p...)
		n += chunk
		addr += uint64(chunk)
	}
	return dst, fmt.Errorf("%w: no end within %d bytes", ErrTooLong, max)
}
