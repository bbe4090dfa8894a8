// Package captured keeps what one process answered, in a file, and answers in its place: tests walk the stacks of real
// JVMs again without a JVM.
package captured

import (
	"io"
	"slices"
	"sync"

	"goprof/arch"
	"goprof/process"
)

// Recorder passes everything on to another Target and remembers what was asked and
// answered, so that a walk can be replayed without the process: see Recording.
//
// Memory changes while it is read. So a recording has steps, one for each snapshot that
// is walked, and keeps for each step what had changed since memory was seen before.
type Recorder struct {
	target process.Target

	mu      sync.Mutex
	blocks  map[uint64]*recBlock
	steps   []recStep
	codes   map[codeKey]codeAnswer
	globals map[globalKey]globalAnswer
	images  map[string]imageAnswer
}

// recBlockSize is the grain in which memory is kept: walks read small structures that
// are strewn over much memory.
const recBlockSize = 256

// recBlock is a piece of memory as it was first seen, and as it was seen last.
type recBlock struct {
	first, last [recBlockSize]byte
	seen        [recBlockSize / 64]uint64 // one bit for each byte
}

// recStep is one snapshot and what had changed when it was walked.
type recStep struct {
	snap    *process.Snapshot
	patches []patch
}

// patch is a piece of memory that got another content.
type patch struct {
	addr uint64
	data []byte
}

type codeKey struct {
	pc    uint64
	exact bool
}

type codeAnswer struct {
	code process.Code
	ok   bool
}

type globalKey struct{ image, symbol string }

type globalAnswer struct {
	addr uint64
	err  error
}

type imageAnswer struct {
	image process.Image
	ok    bool
}

// NewRecorder records what is read from t.
func NewRecorder(t process.Target) *Recorder {
	r := &Recorder{target: t}
	r.Reset()
	return r
}

// Reset forgets all that was recorded.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blocks = map[uint64]*recBlock{}
	r.steps = nil
	r.codes = map[codeKey]codeAnswer{}
	r.globals = map[globalKey]globalAnswer{}
	r.images = map[string]imageAnswer{}
}

// Begin starts a new step: what is read from now on is read for snap. snap is copied.
func (r *Recorder) Begin(snap *process.Snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, recStep{snap: snap.Clone()})
}

// Save writes the recording. Snapshots that had no step of their own may be given; they
// follow after the others.
func (r *Recorder) Save(w io.Writer, snaps []*process.Snapshot) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	steps := slices.Clone(r.steps)
	for _, s := range snaps {
		steps = append(steps, recStep{snap: s})
	}
	return r.write(w, steps)
}

// Read implements Memory.
func (r *Recorder) Read(addr uint64, p []byte) error {
	err := r.target.Read(addr, p)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.note(addr, p)
	}
	return err
}

// ReadMany implements Memory.
func (r *Recorder) ReadMany(rs []process.Range) {
	r.target.ReadMany(rs)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range rs {
		if rs[i].OK {
			r.note(rs[i].Addr, rs[i].Buf)
		}
	}
}

// note remembers what was read.
func (r *Recorder) note(addr uint64, p []byte) {
	for len(p) > 0 {
		base := addr &^ (recBlockSize - 1)
		at := int(addr - base)
		n := min(len(p), recBlockSize-at)
		b := r.blocks[base]
		if b == nil {
			b = new(recBlock)
			r.blocks[base] = b
		}
		if from, to := b.note(at, p[:n]); from < to && len(r.steps) > 0 {
			step := &r.steps[len(r.steps)-1]
			step.patches = append(step.patches, patch{base + uint64(from), slices.Clone(b.last[from:to])})
		}
		addr += uint64(n)
		p = p[n:]
	}
}

// note returns the range in which bytes that were seen before have changed.
func (b *recBlock) note(at int, p []byte) (from, to int) {
	for i, v := range p {
		k := at + i
		word, bit := k/64, uint64(1)<<(k%64)
		switch {
		case b.seen[word]&bit == 0:
			b.seen[word] |= bit
			b.first[k] = v
		case b.last[k] != v:
			if from == to {
				from = k
			}
			to = k + 1
		}
		b.last[k] = v
	}
	return from, to
}

// chunks returns the memory as first seen, in pieces as large as can be, in order.
func (r *Recorder) chunks() []patch {
	bases := make([]uint64, 0, len(r.blocks))
	for base := range r.blocks {
		bases = append(bases, base)
	}
	slices.Sort(bases)
	var chunks []patch
	for _, base := range bases {
		b := r.blocks[base]
		for i := range recBlockSize {
			if b.seen[i/64]>>(i%64)&1 == 0 {
				continue
			}
			addr := base + uint64(i)
			if n := len(chunks); n > 0 && chunks[n-1].addr+uint64(len(chunks[n-1].data)) == addr {
				chunks[n-1].data = append(chunks[n-1].data, b.first[i])
				continue
			}
			chunks = append(chunks, patch{addr, []byte{b.first[i]}})
		}
	}
	return chunks
}

// CPU implements Target.
func (r *Recorder) CPU() *arch.CPU { return r.target.CPU() }

// Generation implements Target.
func (r *Recorder) Generation() uint64 { return r.target.Generation() }

// Code implements Target.
func (r *Recorder) Code(pc uint64, exact bool) (process.Code, bool) {
	c, ok := r.target.Code(pc, exact)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.codes[codeKey{pc, exact}] = codeAnswer{c, ok}
	return c, ok
}

// Global implements Target.
func (r *Recorder) Global(image, symbol string) (uint64, error) {
	addr, err := r.target.Global(image, symbol)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.globals[globalKey{image, symbol}] = globalAnswer{addr, err}
	return addr, err
}

// Image implements Target.
func (r *Recorder) Image(name string) (process.Image, bool) {
	image, ok := r.target.Image(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.images[name] = imageAnswer{image, ok}
	return image, ok
}
