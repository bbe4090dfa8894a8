//go:build linux

package process

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
)

// Markers are instructions that a library's authors have marked for probes (USDT, SystemTap's sys/sdt.h). A marker is a
// nop in the code, and an ELF note in the section .note.stapsdt with the nop's address and a name.

// Marker stands for all markers with one provider and name in one image.
type Marker struct {
	Provider, Name string
	Functions      []Function // its places, in the form that probes need
	// Guarded: the code reaches the marker only if a counter in the process's memory is not 0 (a semaphore). goprof would
	// have to write to the process to set it.
	Guarded bool
}

var (
	// ErrNoMarker: no image has a marker of that name.
	ErrNoMarker = errors.New("process: no such marker")
	ErrGuarded  = errors.New("process: the marker has a semaphore")
)

const (
	markerSection = ".note.stapsdt"
	markerBase    = ".stapsdt.base"
	// Limits on what is read. HotSpot's libjvm.so has about 560 notes in 53 KB, with names of up to 35 bytes.
	maxMarkerBytes = 4 << 20
	maxMarkers     = 1 << 14
	maxMarkerName  = 128
)

// Markers lists the markers of all images. It leaves out images that cannot be read.
func (p *Process) Markers() ([]Marker, error) {
	if !p.lock() {
		return nil, ErrSilent
	}
	defer p.mu.Unlock()
	var all []Marker
	for _, l := range p.images {
		all = append(all, l.markers(p.CPU().Probe.Nop)...)
		if len(all) > maxMarkers {
			return nil, fmt.Errorf("%w: more than %d markers", ErrTooLong, maxMarkers)
		}
	}
	return all, nil
}

// Marker returns the addresses of a marker. The name may have "-" for "__", as in DTrace.
func (p *Process) Marker(provider, name string) ([]Function, error) {
	all, err := p.Markers()
	if err != nil {
		return nil, err
	}
	name = strings.ReplaceAll(name, "-", "__")
	for i := range all {
		m := &all[i]
		if m.Provider != provider || m.Name != name {
			continue
		}
		if m.Guarded {
			return nil, fmt.Errorf("%w: %s:%s", ErrGuarded, provider, name)
		}
		if len(m.Functions) > maxFunctions {
			return nil, fmt.Errorf("%w: more than %d places are called %s", ErrTooLong, maxFunctions, name)
		}
		return m.Functions, nil
	}
	return nil, fmt.Errorf("%w: %s:%s", ErrNoMarker, provider, name)
}

// markers reads the markers of an image. It leaves out a marker without a nop, because a breakpoint in the middle of an
// instruction would harm the program.
func (l *loaded) markers(nop []byte) []Marker {
	if l.Name == vdsoName {
		return nil
	}
	list := markerList{at: map[[2]string]int{}}
	l.place()
	l.with(func(f *elfFile) {
		s := f.section(markerSection)
		if s == nil || s.Size > maxMarkerBytes {
			return
		}
		notes, err := f.data(s)
		if err != nil {
			return
		}
		moved := uint64(0) // the distance by which prelink has moved the file's addresses
		base := f.section(markerBase)
		for _, n := range parseMarkers(notes) {
			if base != nil {
				moved = base.Addr - n.base
			}
			place, ok := l.functionAt(n.at + moved)
			off, left, inFile := f.offset(n.at + moved)
			if !ok || !inFile || left < uint64(len(nop)) {
				continue
			}
			if code, err := f.bytes(off, uint64(len(nop))); err != nil || !bytes.Equal(code, nop) {
				continue
			}
			place.Symbol = n.name
			list.add(&n, place)
		}
	})
	return list.all
}

// markerList has one Marker for each provider and name.
type markerList struct {
	all []Marker
	at  map[[2]string]int // the index of each provider and name
}

func (l *markerList) add(n *markerNote, place Function) {
	key := [2]string{n.provider, n.name}
	i, known := l.at[key]
	if !known {
		i = len(l.all)
		l.at[key] = i
		l.all = append(l.all, Marker{Provider: n.provider, Name: n.name})
	}
	m := &l.all[i]
	m.Functions, m.Guarded = append(m.Functions, place), m.Guarded || n.semaphore != 0
}

// markerNote is one ELF note, with addresses of the file.
type markerNote struct {
	at, base, semaphore uint64
	provider, name      string
}

// parseMarkers reads the ELF notes of the owner "stapsdt" and type 3 (sys/sdt.h, _SDT_NOTE). A note has three
// addresses, and three texts that end with a zero byte: provider, name and arguments. The arguments are not read.
func parseMarkers(b []byte) (list []markerNote) {
	for note := range notesOf(b, "stapsdt\x00", 3) {
		if n, ok := parseMarker(note); ok {
			list = append(list, n)
		}
		if len(list) >= maxMarkers {
			break
		}
	}
	return list
}

func parseMarker(b []byte) (n markerNote, ok bool) {
	if len(b) < 24 {
		return n, false
	}
	n.at, n.base, n.semaphore = binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]),
		binary.LittleEndian.Uint64(b[16:])
	texts := bytes.SplitN(b[24:], []byte{0}, 3)
	if len(texts) < 3 || !isMarkerName(texts[0]) || !isMarkerName(texts[1]) {
		return n, false
	}
	n.provider, n.name = string(texts[0]), string(texts[1])
	return n, true
}

// isMarkerName reports whether a name is a C identifier. Other names could contain bytes that are harmful on a
// terminal.
func isMarkerName(b []byte) bool {
	for _, c := range b {
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return len(b) > 0 && len(b) <= maxMarkerName
}
