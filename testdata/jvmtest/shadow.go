//go:build linux

package jvmtest

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// The layout of the file, as testdata/java/ShadowStack.java describes it.
const (
	shadowMagic   = "SHADOW01"
	shadowHeader  = 4096
	regionEntries = 16
	entrySize     = 8

	stateRunning = 1
)

// ShadowFrame is a method and the line that it has reached.
type ShadowFrame struct {
	Method string
	Line   int
}

// ShadowThread is what a thread of truth.Shadow says of itself. It holds together only
// while that thread is stopped.
type ShadowThread struct {
	TID     int
	Running bool   // else there is nothing to compare
	Seed    uint32 // of the call tree, to find a failure again
	// Frames are the thread's own word on its stack, from the top down. Method may end with "*".
	// The first one's Line is of its last call, not of where it is now.
	Frames []ShadowFrame
}

// Shadow is the file that truth.Shadow writes, mapped.
type Shadow struct {
	data       []byte
	threads    int
	regionSize int
	maxDepth   int
	names      map[uint32]string
	known      map[string]bool
	unmap      func() error
}

// OpenShadow maps a shadow file and reads the names beside it.
func OpenShadow(path string) (*Shadow, error) {
	ids, err := os.Open(path + ".ids")
	if err != nil {
		return nil, err
	}
	defer ids.Close()
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	data, err := syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", path, err)
	}
	shadow, err := ParseShadow(data, ids)
	if err != nil {
		return nil, errors.Join(err, syscall.Munmap(data))
	}
	shadow.unmap = func() error { return syscall.Munmap(data) }
	return shadow, nil
}

// Close unmaps the file.
func (s *Shadow) Close() error {
	if s.unmap == nil {
		return nil
	}
	unmap := s.unmap
	s.unmap, s.data, s.threads = nil, nil, 0
	return unmap()
}

// ParseShadow reads a shadow file's bytes, which may go on changing, and its names.
func ParseShadow(data []byte, ids io.Reader) (*Shadow, error) {
	if len(data) < shadowHeader || string(data[:8]) != shadowMagic {
		return nil, errors.New("no shadow file")
	}
	s := &Shadow{
		data:       data,
		threads:    int(binary.LittleEndian.Uint32(data[8:])),
		regionSize: int(binary.LittleEndian.Uint32(data[12:])),
		maxDepth:   int(binary.LittleEndian.Uint32(data[16:])),
		names:      map[uint32]string{},
		known:      map[string]bool{},
	}
	if s.regionSize < regionEntries+entrySize*s.maxDepth || s.threads > (len(data)-shadowHeader)/s.regionSize {
		return nil, errors.New("shadow file: its regions do not fit")
	}
	return s, s.readNames(ids)
}

func (s *Shadow) readNames(ids io.Reader) error {
	lines := bufio.NewScanner(ids)
	for lines.Scan() {
		number, name, ok := strings.Cut(lines.Text(), "\t")
		id, err := strconv.ParseUint(number, 10, 32)
		if !ok || err != nil {
			return fmt.Errorf("shadow names: bad line %q", lines.Text())
		}
		s.names[uint32(id)] = name
		s.known[name] = true
	}
	return lines.Err()
}

// Threads reads all regions: for their tids, at any time.
func (s *Shadow) Threads() ([]ShadowThread, error) {
	threads := make([]ShadowThread, 0, s.threads)
	for i := range s.threads {
		thread, err := s.thread(i)
		if err != nil {
			return nil, err
		}
		threads = append(threads, thread)
	}
	return threads, nil
}

// Thread reads the region of a thread that is stopped.
func (s *Shadow) Thread(tid int) (ShadowThread, error) {
	for i := range s.threads {
		region := s.data[shadowHeader+i*s.regionSize:]
		if int(binary.LittleEndian.Uint32(region)) == tid {
			return s.thread(i)
		}
	}
	return ShadowThread{}, fmt.Errorf("no shadow of thread %d", tid)
}

func (s *Shadow) thread(number int) (ShadowThread, error) {
	region := s.data[shadowHeader+number*s.regionSize:][:s.regionSize]
	thread := ShadowThread{
		TID:     int(binary.LittleEndian.Uint32(region)),
		Running: binary.LittleEndian.Uint32(region[4:]) == stateRunning,
		Seed:    binary.LittleEndian.Uint32(region[12:]),
	}
	depth := int(binary.LittleEndian.Uint32(region[8:]))
	if depth > s.maxDepth {
		return thread, fmt.Errorf("shadow of thread %d: depth %d", thread.TID, depth)
	}
	thread.Frames = make([]ShadowFrame, depth)
	for i := range depth {
		entry := region[regionEntries+entrySize*i:]
		name, ok := s.names[binary.LittleEndian.Uint32(entry)]
		if !ok {
			return thread, fmt.Errorf("shadow of thread %d: entry %d has no name", thread.TID, i)
		}
		thread.Frames[depth-1-i] = ShadowFrame{name, int(binary.LittleEndian.Uint32(entry[4:]))}
	}
	return thread, nil
}

// The part of a lambda body's name that javac chooses.
var lambdaNumber = regexp.MustCompile(`\.lambda\$\w+\$(\d+)$`)

// Name gives the name by which a method of a walk stands in the shadow, if it has one.
// Frames of other methods are left out before the two are compared.
func (s *Shadow) Name(method string) (string, bool) {
	if strings.Contains(method, ".lambda$") {
		if at := lambdaNumber.FindStringSubmatchIndex(method); at != nil {
			method = method[:at[2]] + "*"
		}
	}
	return method, s.known[method]
}
