//go:build linux

package process

import (
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// refreshEvery is how soon after the last reading of maps an unknown pc makes us read
// them again: code that is mapped nowhere (the JVM's own, mostly) must not cost a
// reading each.
const refreshEvery = 100 * time.Millisecond

// space is what is known of a process's address space: its mappings, the images in
// them, and the answers that Code gave.
type space struct {
	mappings  []Mapping
	images    []*loaded
	exec      []execRange
	refreshed time.Time
	gen       atomic.Uint64
	codes     codeCache
	cfi       cfiMachine
	tables    readBudget // of all images
	sums      readBudget
}

func (s *space) init(*Process) {
	s.codes.init()
	s.tables.left, s.tables.from = maxProcessTables, runTables
	s.sums.left = maxSums
}

// Generation changes when an executable file was mapped or unmapped.
func (p *Process) Generation() uint64 { return p.gen.Load() }

// Mappings returns the mappings as of the last Refresh. The slice must not be changed.
func (p *Process) Mappings() []Mapping {
	if !p.lock() {
		return nil
	}
	defer p.mu.Unlock()
	return p.mappings
}

// Refresh reads the mappings anew. It returns ErrGone when the program has ended.
func (p *Process) Refresh() error {
	if !p.lock() {
		return ErrSilent
	}
	defer p.mu.Unlock()
	return p.refresh()
}

func (p *Process) refresh() error {
	p.refreshed = time.Now()
	if err := p.Alive(); err != nil {
		return err
	}
	// The kept descriptor reads nothing once the program is gone.
	if _, err := p.maps.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if !p.calls.begin() {
		return ErrSilent
	}
	ms, err := ParseMaps(p.maps)
	p.calls.end()
	if err != nil && !errors.Is(err, ErrTooLong) {
		return err
	}
	if len(ms) == 0 {
		return ErrGone
	}
	p.mappings = ms
	p.setImages(groupImages(ms))
	return nil
}

// setImages keeps what is known of images that are still there.
func (p *Process) setImages(groups []group) {
	changed := len(p.images) != len(groups)
	old := make(map[uint64]*loaded, len(p.images)) // there may be tens of thousands
	for _, l := range p.images {
		old[l.first.Start] = l
	}
	p.images = make([]*loaded, len(groups))
	for i := range groups {
		g := &groups[i]
		if l := old[g.first.Start]; l != nil && l.same(g) {
			l.Image.End = g.End
			p.images[i] = l
			delete(old, g.first.Start)
		} else {
			p.images[i] = newLoaded(p, g)
			changed = true
		}
	}
	for _, l := range old {
		l.budget.giveAllBack() // it is not mapped any more
	}
	if !changed {
		return
	}
	p.exec = p.exec[:0]
	for _, l := range p.images {
		for _, m := range l.exec {
			p.exec = append(p.exec, execRange{m.Start, m.End, l})
		}
	}
	sortExec(p.exec)
	p.codes.clear()
	p.gen.Add(1)
}

func newLoaded(p *Process, g *group) *loaded {
	return &loaded{group: *g, files: patientFiles{p}, budget: &readBudget{left: maxProcessTables, from: &p.tables},
		sums: &p.sums}
}

func (p *Process) refreshIfOld() bool {
	return time.Since(p.refreshed) >= refreshEvery && p.refresh() == nil
}

// Code tells what native code stands at pc. An unknown pc makes it read the mappings
// again, but not more often than each 100 ms. Answers are kept: asked again, it does not
// allocate.
func (p *Process) Code(pc uint64, exact bool) (Code, bool) {
	if !p.lock() {
		return Code{}, false
	}
	defer p.mu.Unlock()
	key := codeKey{pc, exact}
	if c, ok := p.codes.get(key); ok {
		return c, true
	}
	at := pc
	if !exact {
		at-- // the call: what it returns to may belong to the next function
	}
	l, ok := findExec(p.exec, at)
	if !ok && p.refreshIfOld() {
		l, ok = findExec(p.exec, at)
	}
	if !ok {
		return Code{}, false
	}
	c := l.code(pc, at, &p.cfi)
	p.codes.put(key, c)
	return c, true
}

// Image returns where the first image of that file name is loaded. Where none has it, one that
// calls itself so will do: its file was renamed since.
func (p *Process) Image(name string) (Image, bool) {
	if !p.lock() {
		return Image{}, false
	}
	defer p.mu.Unlock()
	l := p.findImage(name)
	if l == nil {
		return Image{}, false
	}
	l.place()
	return l.Image, true
}

// Global returns the address of a symbol of the first image of that file name.
func (p *Process) Global(image, symbol string) (uint64, error) {
	if !p.lock() {
		return 0, ErrSilent
	}
	defer p.mu.Unlock()
	l := p.findImage(image)
	if l == nil {
		return 0, ErrNoImage
	}
	return l.global(symbol)
}

func (p *Process) findImage(name string) *loaded {
	for _, called := range []func(*loaded) string{(*loaded).name, (*loaded).ownName} {
		for _, l := range p.images {
			if called(l) == name {
				return l
			}
		}
	}
	return nil
}
