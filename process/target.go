// Package process reads the target, the process that goprof profiles: its memory, its mappings, its images (program and
// libraries) with their symbols and unwind tables, and its threads.
//
// Two types implement Target: a live Process, and a Core, which reads a core file. All packages above read through
// Target. So tests can record a walk and replay it on any machine (testdata/captured).
//
// Data that is read here is not trusted. The caller bounds each read and checks the result. A failed read is an error,
// never a zero.
package process

import (
	"errors"

	"goprof/arch"
)

var (
	// ErrFault: no memory is mapped at that address.
	ErrFault = errors.New("process: bad address")
	// ErrGone: the process has ended, or now runs another program (exec).
	ErrGone = errors.New("process: process is gone")
	// ErrTooLong: a structure in the target is larger than it can be in an undamaged process.
	ErrTooLong = errors.New("process: too long")
)

type Memory interface {
	// Read fills p with the bytes at addr, or returns an error.
	Read(addr uint64, p []byte) error
	// ReadMany reads many ranges with few system calls and sets OK in each.
	ReadMany(rs []Range)
}

type Range struct {
	Addr uint64
	Buf  []byte
	OK   bool
}

// Target is a process as the walker sees it.
type Target interface {
	Memory
	CPU() *arch.CPU

	// Code describes the native code at pc: its image, unwind rules and symbol. If exact is true, pc is the address of an
	// interrupted instruction. Otherwise pc is a return address, and Code describes the call before it. ok is false if no
	// executable code is mapped at pc.
	Code(pc uint64, exact bool) (c Code, ok bool)
	// Generation changes when results of Code may have changed.
	Generation() uint64

	// Global returns the address of a symbol in the first image with the file name image ("libjvm.so").
	Global(image, symbol string) (addr uint64, err error)
	// Image returns the first image with that file name, false if there is none.
	Image(image string) (Image, bool)
}

// Image is one loaded ELF file.
type Image struct {
	Name  string // base name of the mapped file
	Path  string // as in /proc/PID/maps
	Start uint64 // first mapped address
	End   uint64
	Bias  uint64 // the number to add to the file's addresses
}

// Code describes the native code at one pc.
type Code struct {
	Image   string // base name of the mapped file: "libc.so.6", "[vdso]"; or JITCode
	BuildID string // of the image, in hexadecimal digits; empty if there is none
	Offset  uint64 // pc relative to the image's bias, for lib.so+0x1f
	Symbol  string // linkage name, empty if there is none
	Row     *Row   // unwind rules at that pc, nil if there are none
}
