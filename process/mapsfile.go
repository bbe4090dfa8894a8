//go:build linux

package process

import (
	"hash/maphash"
	"io"
	"os"
)

// mapsFile is a process's list of mappings as the kernel tells it. Where nothing was mapped or unmapped since the last
// reading, the text is the same. To compare texts takes half of the time that parsing takes, and no memory.
type mapsFile struct {
	*os.File // it reads nothing once the program is gone
	hash     maphash.Hash
	parsed   uint64 // the sum of the text that was parsed last; 0: none was
	buf      [8 << 10]byte
}

// sum is a number by which the text is known, and never 0. No program can choose it: the hash begins with a secret.
func (m *mapsFile) sum() (uint64, error) {
	if _, err := m.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	m.hash.Reset()
	n, err := io.CopyBuffer(&m.hash, struct{ io.Reader }{m.File}, m.buf[:])
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, ErrGone
	}
	return m.hash.Sum64() | 1, nil
}

// parse reads the text. A text that changes meanwhile has another sum next time.
func (m *mapsFile) parse() ([]Mapping, error) {
	if _, err := m.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return ParseMaps(m.File)
}
