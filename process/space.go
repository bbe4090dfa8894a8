//go:build linux

package process

import (
	"errors"
	"time"
)

// refreshEvery is the shortest time between two readings of maps because of an unknown pc. Code that no file holds
// (mostly code that the JVM has generated) must not cost a reading of maps each time.
const refreshEvery = 100 * time.Millisecond

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

// Refresh reads the mappings again. It returns ErrGone when the program has ended.
func (p *Process) Refresh() error {
	if !p.lock() {
		return ErrSilent
	}
	defer p.mu.Unlock()
	return p.refresh()
}

// refresh reads the mappings again, if they have changed.
func (p *Process) refresh() error {
	p.refreshed = time.Now()
	if err := p.Alive(); err != nil {
		return err
	}
	if !p.calls.begin() {
		return ErrSilent
	}
	sum, err := p.maps.sum()
	same := err == nil && sum != 0 && sum == p.maps.parsed
	var ms []Mapping
	if err == nil && !same {
		ms, sum, err = p.maps.parse()
	}
	p.calls.end()
	if same {
		return nil
	}
	if err != nil && !errors.Is(err, ErrTooLong) {
		return err
	}
	if len(ms) == 0 {
		return ErrGone
	}
	p.mappings, p.maps.parsed = ms, sum
	p.setImages(groupImages(ms, maxMappings), func(g *group) *loaded { return newLoaded(p, g) })
	return nil
}

func newLoaded(p *Process, g *group) *loaded { return p.newLoaded(g, patientFiles{p}) }

func (p *Process) refreshIfOld() bool {
	return time.Since(p.refreshed) >= refreshEvery && p.refresh() == nil
}

// Code returns what native code stands at pc. For an unknown pc it reads the mappings again, but not more often than
// each 100 ms. Answers are kept: a second call does not allocate.
func (p *Process) Code(pc uint64, exact bool) (Code, bool) {
	if !p.lock() {
		return Code{}, false
	}
	defer p.mu.Unlock()
	return p.codeAt(pc, exact, p.refreshIfOld)
}

// Image returns where the first image of that file name is loaded. If there is none, an image counts that gives itself
// that name: its file was renamed since.
func (p *Process) Image(name string) (Image, bool) {
	if !p.lock() {
		return Image{}, false
	}
	defer p.mu.Unlock()
	return p.imageCalled(name)
}

// Global returns the address of a symbol of the first image of that file name.
func (p *Process) Global(image, symbol string) (uint64, error) {
	if !p.lock() {
		return 0, ErrSilent
	}
	defer p.mu.Unlock()
	return p.globalOf(image, symbol)
}
