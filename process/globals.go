//go:build linux

package process

import (
	"bytes"
	"fmt"
)

// Globals returns symbols of the first image with that file name, by address: up to most symbols with names that begin
// with prefix. It reads the full symbol table only.
func (p *Process) Globals(image, prefix string, most int) (map[uint64]string, error) {
	if !p.lock() {
		return nil, ErrSilent
	}
	defer p.mu.Unlock()
	l := p.findImage(image)
	if l == nil {
		return nil, ErrNoImage
	}
	l.place()
	l.symbol(0) // reads the tables
	found := map[uint64]string{}
	for _, t := range l.syms {
		t.eachNamed(prefix, func(addr uint64, name []byte) {
			if len(found) < most {
				found[l.Bias+addr] = string(bytes.ToValidUTF8(name, []byte("\uFFFD")))
			}
		})
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: %s... in %s", ErrNoSymbol, prefix, l.Name)
	}
	return found, nil
}

// eachNamed calls each for every defined symbol whose name begins with prefix.
func (t *symtab) eachNamed(prefix string, each func(addr uint64, name []byte)) {
	for i := range uint32(t.len()) {
		s := t.at(i)
		at, end := uint64(s.name), uint64(s.name)+uint64(len(prefix))
		if end <= uint64(len(t.names)) && string(t.names[at:end]) == prefix && s.defined() {
			each(s.value, cstring(t.names, s.name))
		}
	}
}
