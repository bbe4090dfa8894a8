//go:build linux

package session

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"slices"
	"strconv"

	"goprof/profile"
	"goprof/sampler/look"
)

// This file names the kernel's part of a stack. /proc/kallsyms lists the kernel's functions with their addresses. If
// the kernel hides addresses (kernel.kptr_restrict), all addresses in that file are 0.

// kernelNames names addresses of the kernel's code.
type kernelNames struct {
	addrs []uint64
	names []string
	funcs map[string]*profile.Func
	facts map[uint64]kernelFacts // of addresses (wakers_kernel.go)
}

// kernelFrames adds the kernel's frames to stacks, if they are wanted.
type kernelFrames struct {
	names *kernelNames // nil if they are not wanted
	err   error        // why they have no names
}

func openKernelFrames(wanted bool) (k kernelFrames) {
	if !wanted {
		return k
	}
	if k.names, k.err = openKernelNames(); k.err != nil {
		k.names = &kernelNames{funcs: map[string]*profile.Func{}}
	}
	return k
}

// ErrKernelHidden: the kernel does not show where its functions are.
var ErrKernelHidden = errors.New("the kernel hides the addresses of its functions (kernel.kptr_restrict)")

// maxKallsyms bounds what is read of /proc/kallsyms: some 200,000 lines of 50 bytes.
const maxKallsyms = 256 << 20

func openKernelNames() (*kernelNames, error) {
	f, err := os.Open("/proc/kallsyms")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readKernelNames(io.LimitReader(f, maxKallsyms))
}

// readKernelNames reads lines such as "ffffffff81000000 T _stext". Functions of modules have "\t[module]" at the end.
func readKernelNames(from io.Reader) (*kernelNames, error) {
	type symbol struct {
		addr uint64
		name string
	}
	var list []symbol
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		addr, rest, ok := bytes.Cut(lines.Bytes(), []byte{' '})
		if !ok || len(rest) < 3 || rest[0] != 't' && rest[0] != 'T' && rest[0] != 'w' && rest[0] != 'W' {
			continue
		}
		n, err := strconv.ParseUint(string(addr), 16, 64)
		if err != nil || n == 0 {
			continue
		}
		name, _, _ := bytes.Cut(rest[2:], []byte{'\t'})
		list = append(list, symbol{n, string(bytes.ToValidUTF8(name, []byte("\uFFFD")))})
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, ErrKernelHidden
	}
	slices.SortStableFunc(list, func(a, b symbol) int { return cmp.Compare(a.addr, b.addr) })
	k := &kernelNames{funcs: map[string]*profile.Func{}}
	for _, s := range list {
		k.addrs, k.names = append(k.addrs, s.addr), append(k.names, s.name)
	}
	return k, nil
}

const (
	// unknownKernel is the name of a frame of the kernel whose function is not known.
	unknownKernel = "[kernel]"
	// maxKernelFunction bounds the length of a function of the kernel. Code that is farther from the last named function
	// does not belong to it: it may be a program that the kernel compiled, between the modules.
	maxKernelFunction = 1 << 20
)

func (k *kernelNames) at(addr uint64) *profile.Func {
	name := unknownKernel
	if i, ok := slices.BinarySearch(k.addrs, addr); ok {
		name = k.names[i]
	} else if i > 0 && addr-k.addrs[i-1] < maxKernelFunction {
		name = k.names[i-1]
	}
	fn, ok := k.funcs[name]
	if !ok {
		fn = &profile.Func{Name: name}
		k.funcs[name] = fn
	}
	return fn
}

// notes returns the note that the kernel's functions have no names, and why.
func (k *kernelFrames) notes() []profile.Note {
	if k.err == nil {
		return nil
	}
	return []profile.Note{{Name: "kernel-names", Remedy: "sysctl kernel.kptr_restrict=0",
		Text: "the kernel's functions have no names: " + k.err.Error()}}
}

// put puts the kernel's frames of a look on top of its stack.
func (k *kernelFrames) put(snap *look.Look, stack *profile.Stack) {
	if len(snap.Kernel) == 0 || k.names == nil {
		return
	}
	n := len(snap.Kernel)
	frames := append(stack.Frames, make([]profile.Frame, n)...)
	copy(frames[n:], frames)
	for i, addr := range snap.Kernel {
		if i > 0 {
			addr-- // a return address: the call is before it
		}
		frames[i] = profile.Frame{Func: k.names.at(addr), Kind: profile.Kernel, BCI: -1}
	}
	stack.Frames = frames
	if stack.Carrier > 0 {
		stack.Carrier += n
	}
}
