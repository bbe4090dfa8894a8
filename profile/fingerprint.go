package profile

import (
	"math/bits"
	"math/rand/v2"
	"unsafe"
)

// Fingerprint is a hash of a stack's frames of 128 bits, with secret seeds: different stacks have different
// Fingerprints. It is made from the addresses of Funcs, so it is valid as long as these Funcs are kept.
type Fingerprint [2]uint64

// Fingerprinter makes Fingerprints of stacks. Fingerprints of two Fingerprinters cannot be compared.
type Fingerprinter struct {
	seeds [2]uint64
}

func NewFingerprinter() Fingerprinter {
	return Fingerprinter{[2]uint64{rand.Uint64(), rand.Uint64()}}
}

func (p *Fingerprinter) Of(s *Stack) Fingerprint { return p.of(s, ^uint64(0)) }

// OfLines returns a stack's Fingerprint without its instructions: all stacks with the same lines have the same one.
func (p *Fingerprinter) OfLines(s *Stack) Fingerprint { return p.of(s, 0) }

func (p *Fingerprinter) of(s *Stack, instructions uint64) Fingerprint {
	x, y := p.seeds[0], p.seeds[1]
	if s == nil {
		return Fingerprint{x, y}
	}
	x += uint64(s.Truncated) + 1
	if len(s.Frames) > 0 {
		y += uint64(s.Frames[0].Sure) & instructions
	}
	for i := range s.Frames {
		f := &s.Frames[i]
		at := uint64(uintptr(unsafe.Pointer(f.Func)))
		where := uint64(uint32(f.Line))<<32 | uint64(uint32(f.BCI)) ^ f.PC&instructions
		x = mix(x^at, where^0x9e3779b97f4a7c15+uint64(f.Kind))
		y = mix(y^where, at^0xd1b54a32d192ed03-uint64(f.Kind))
	}
	return Fingerprint{x, y}
}

// mix folds the product of two numbers, as wyhash does. A zero would erase what came before.
func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a|1, b|1)
	return hi ^ lo ^ a ^ bits.RotateLeft64(b, 32)
}
