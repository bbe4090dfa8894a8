//go:build linux

package process

import (
	"hash/maphash"
	"io"
	"os"
	"sync"
)

// mapsFile is a process's list of mappings as the kernel shows it. If nothing was mapped or unmapped since the last
// reading, the text is the same. To compare texts takes half of the time that parsing takes, and no memory.
type mapsFile struct {
	*os.File // it reads nothing once the program is gone
	hash     maphash.Hash
	parsed   uint64 // the sum of the text that was parsed last; 0 if none was, or if it has none
}

// maxMapsText bounds the bytes of a text that are summed: 256 for each of the mappings that are read. A longer text has
// no sum and is parsed each time.
const maxMapsText = maxMappings * 256

// sum returns a number by which the text is known; 0 if it is too long. No program can choose the number: the hash
// begins with a secret.
func (m *mapsFile) sum() (uint64, error) {
	if err := m.rewind(); err != nil {
		return 0, err
	}
	n, sum, err := m.sumRest()
	if err == nil && n == 0 {
		err = ErrGone
	}
	return sum, err
}

// parse reads the text, and sums the bytes that it has read: the text may have changed since it was summed.
func (m *mapsFile) parse() (ms []Mapping, sum uint64, err error) {
	if err := m.rewind(); err != nil {
		return nil, 0, err
	}
	ms, err = ParseMaps(io.TeeReader(m.File, &m.hash))
	_, sum, restErr := m.sumRest() // there is a rest if there are too many mappings
	if restErr != nil {
		sum = 0
	}
	return ms, sum, err
}

const mapsPiece = 8 << 10

var mapsBuffers = sync.Pool{New: func() any { return new([mapsPiece]byte) }}

func (m *mapsFile) rewind() error {
	m.hash.Reset()
	_, err := m.Seek(0, io.SeekStart)
	return err
}

// sumRest sums the rest of the text, with what was read before. n is how many bytes the rest has.
func (m *mapsFile) sumRest() (n int64, sum uint64, err error) {
	buf := mapsBuffers.Get().(*[mapsPiece]byte)
	defer mapsBuffers.Put(buf)
	n, err = io.CopyBuffer(&m.hash, io.LimitReader(m.File, maxMapsText), buf[:])
	if err != nil || n == maxMapsText {
		return n, 0, err
	}
	return n, m.hash.Sum64() | 1, nil
}
