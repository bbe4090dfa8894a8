package captured

import (
	"errors"
	"io"
	"sort"

	"goprof/arch"
	"goprof/process"
)

// ErrBadRecording: a file that is no recording, or a damaged one.
var ErrBadRecording = errors.New("process: malformed recording")

// Recording is a Target that answers as the recorded one did. What was not asked then is
// not known: memory is ErrFault, code is nowhere.
//
// It shows memory as of one step. A Recording is for one goroutine; reads do not
// allocate.
type Recording struct {
	// Snapshots holds what was walked, one for each step.
	Snapshots []*process.Snapshot

	cpu     *arch.CPU
	chunks  []patch // memory now
	first   []byte  // memory as first seen, all chunks in a row
	all     []byte  // memory now, all chunks in a row
	patches [][]patch
	step    int

	codes   map[codeKey]codeAnswer
	globals map[globalKey]globalAnswer
	images  map[string]imageAnswer
}

// Load reads what Recorder.Save wrote, and shows step 0.
func Load(rd io.Reader) (*Recording, error) {
	return load(rd, maxRecording)
}

// Step shows memory as it was when snapshot i was walked. Bytes that were read only later
// have their later content.
func (r *Recording) Step(i int) {
	if i < r.step {
		copy(r.all, r.first)
		r.step = -1
	}
	for r.step < i && r.step+1 < len(r.patches) {
		r.step++
		for _, p := range r.patches[r.step] {
			if b := r.find(p.addr, len(p.data)); b != nil {
				copy(b, p.data)
			}
		}
	}
}

// find returns the recorded memory at addr, nil if it is not all there.
func (r *Recording) find(addr uint64, n int) []byte {
	i := sort.Search(len(r.chunks), func(i int) bool { return r.chunks[i].addr > addr })
	if i == 0 {
		return nil
	}
	c := &r.chunks[i-1]
	off := addr - c.addr
	if off > uint64(len(c.data)) || uint64(len(c.data))-off < uint64(n) {
		return nil
	}
	return c.data[off : off+uint64(n)]
}

// Read implements Memory.
func (r *Recording) Read(addr uint64, p []byte) error {
	if len(p) == 0 {
		return nil
	}
	b := r.find(addr, len(p))
	if b == nil {
		return process.ErrFault
	}
	copy(p, b)
	return nil
}

// ReadMany implements Memory.
func (r *Recording) ReadMany(rs []process.Range) {
	for i := range rs {
		rs[i].OK = r.Read(rs[i].Addr, rs[i].Buf) == nil
	}
}

// CPU implements Target.
func (r *Recording) CPU() *arch.CPU { return r.cpu }

// Generation implements Target: what is loaded does not change.
func (r *Recording) Generation() uint64 { return 1 }

// Code implements Target.
func (r *Recording) Code(pc uint64, exact bool) (process.Code, bool) {
	a := r.codes[codeKey{pc, exact}]
	return a.code, a.ok
}

// Global implements Target.
func (r *Recording) Global(image, symbol string) (uint64, error) {
	a, ok := r.globals[globalKey{image, symbol}]
	if !ok {
		return 0, process.ErrNoSymbol
	}
	return a.addr, a.err
}

// Image implements Target.
func (r *Recording) Image(name string) (process.Image, bool) {
	a := r.images[name]
	return a.image, a.ok
}

// EachPiece hands over the memory of this step, piece by piece, lowest address first.
func (r *Recording) EachPiece(do func(addr uint64, b []byte)) {
	for i := range r.chunks {
		do(r.chunks[i].addr, r.chunks[i].data)
	}
}
