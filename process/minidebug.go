package process

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/ulikunitz/xz/lzma"
)

const (
	maxMiniPacked = 16 << 20
	maxMiniDebug  = 32 << 20
)

// unpacking is locked while an image is unpacked, so that there is only one dictionary in memory.
var unpacking sync.Mutex

// miniSymbols reads the mini debug info that some distributions put into their stripped files. .gnu_debugdata is an
// xz-packed ELF file. Its .symtab has the functions that .dynsym lacks (GDB manual, "MiniDebugInfo").
func miniSymbols(f *elfFile) *symtab {
	s := f.section(".gnu_debugdata")
	if s == nil || s.Size > maxMiniPacked {
		return nil
	}
	packed, err := f.data(s)
	if err != nil {
		return nil
	}
	unpacking.Lock()
	b, err := unpackXZ(packed)
	unpacking.Unlock()
	if err != nil || !f.budget.spend(uint64(len(b))) {
		return nil
	}
	mini, err := readELF(bytes.NewReader(b), int64(len(b)), f.budget)
	if err != nil {
		return nil
	}
	return mini.readSymtab(".symtab")
}

// unpackXZ unpacks the first block of an xz stream (The .xz File Format, sections 2 and 3). The tools make only one
// block for files of this size. The xz package would allocate a dictionary of any size that the file requests, up to 4
// GB. So this function reads the headers itself, and gives only the LZMA2 data of the block to the library.
func unpackXZ(b []byte) ([]byte, error) {
	const streamHeader = 12
	if len(b) < streamHeader+2 || string(b[:6]) != "\xfd7zXZ\x00" {
		return nil, fmt.Errorf("%w: no xz stream", ErrBadELF)
	}
	b = b[streamHeader:]
	size := (int(b[0]) + 1) * 4 // 0 begins the index: a stream without blocks
	if b[0] == 0 || size > len(b) {
		return nil, fmt.Errorf("%w: no xz block", ErrBadELF)
	}
	header, flags := b[2:size], b[1]
	for _, present := range []byte{0x40, 0x80} { // packed size, unpacked size
		if flags&present != 0 {
			_, n := binary.Uvarint(header)
			header = header[max(n, 0):]
		}
	}
	// One filter: LZMA2 (0x21) with one byte of properties, the dictionary's size.
	if flags&3 != 0 || len(header) < 3 || header[0] != 0x21 || header[1] != 1 {
		return nil, fmt.Errorf("%w: an xz filter other than LZMA2", ErrBadELF)
	}
	dict, err := lzma.DecodeDictCap(header[2])
	if err != nil {
		return nil, err
	}
	// No match reaches back beyond the beginning of the unpacked data.
	dict = min(max(dict, lzma.MinDictCap), maxMiniDebug)
	r, err := lzma.Reader2Config{DictCap: int(dict)}.NewReader2(bytes.NewReader(b[size:]))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(r, maxMiniDebug+1))
	if err == nil && len(out) > maxMiniDebug {
		err = fmt.Errorf("%w: mini debug info", ErrTooLong)
	}
	return out, err
}
