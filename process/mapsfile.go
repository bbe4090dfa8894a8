//go:build linux

package process

import (
	"hash/maphash"
	"io"
	"os"
	"sync"
)

// mapsFile is /proc/PID/maps. If nothing was mapped or unmapped since the last reading, its text is the same. Comparing
// a hash of the text takes half the time of parsing, and no memory.
type mapsFile struct {
	*os.File // it reads nothing once the program has ended
	hash     maphash.Hash
	parsed   uint64 // the hash of the text that was parsed last; 0: no text, or one without a hash
}

// maxMapsText bounds the bytes of a text that is hashed: 256 for each of maxMappings. A longer text is parsed each
// time.
const maxMapsText = maxMappings * 256

// sum returns a hash of the text. It returns 0 if the text is too long. Programs cannot choose the hash, because it
// includes a secret.
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

// parse reads the text, and hashes the bytes that it reads, because the text may have changed since the last sum.
func (m *mapsFile) parse() (ms []Mapping, sum uint64, err error) {
	if err := m.rewind(); err != nil {
		return nil, 0, err
	}
	ms, err = ParseMaps(io.TeeReader(m.File, &m.hash))
	_, sum, restErr := m.sumRest() // if there are too many mappings, some text is left
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

// sumRest reads the rest of the text and adds it to the hash. n is the number of its bytes.
func (m *mapsFile) sumRest() (n int64, sum uint64, err error) {
	buf := mapsBuffers.Get().(*[mapsPiece]byte)
	defer mapsBuffers.Put(buf)
	n, err = io.CopyBuffer(&m.hash, io.LimitReader(m.File, maxMapsText), buf[:])
	if err != nil || n == maxMapsText {
		return n, 0, err
	}
	return n, m.hash.Sum64() | 1, nil
}
