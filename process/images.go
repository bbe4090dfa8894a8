package process

import (
	"strings"
	"sync/atomic"
	"time"
)

// space is an address space: its mappings, the images in them, and cached results of Code. A live process and a core
// file each have a space, but read mappings and open files in different ways.
type space struct {
	mappings  []Mapping
	images    []*loaded
	exec      []execRange
	refreshed time.Time
	gen       atomic.Uint64
	codes     codeCache
	tables    readBudget // for the tables of all images
	sums      readBudget
}

func (s *space) init() {
	s.codes.init()
	s.tables.left, s.tables.from = maxProcessTables, runTables
	s.sums.left = maxSums
}

// newLoaded makes an image whose tables have not been read yet.
func (s *space) newLoaded(g *group, files imageFiles) *loaded {
	return &loaded{group: *g, files: files, budget: &readBudget{left: maxProcessTables, from: &s.tables}, sums: &s.sums}
}

// setImages sets the images. Images that are still mapped keep their loaded.
func (s *space) setImages(groups []group, newLoaded func(*group) *loaded) {
	changed := len(s.images) != len(groups)
	old := make(map[uint64]*loaded, len(s.images)) // there may be tens of thousands
	for _, l := range s.images {
		old[l.first.Start] = l
	}
	s.images = make([]*loaded, len(groups))
	for i := range groups {
		g := &groups[i]
		if l := old[g.first.Start]; l != nil && l.same(g) {
			l.Image.End = g.End
			s.images[i] = l
			delete(old, g.first.Start)
		} else {
			s.images[i] = newLoaded(g)
			changed = true
		}
	}
	for _, l := range old {
		l.budget.giveAllBack() // this image is no longer mapped
	}
	if !changed {
		return
	}
	s.exec = s.exec[:0]
	for _, l := range s.images {
		for _, m := range l.exec {
			s.exec = append(s.exec, execRange{m.Start, m.End, l})
		}
	}
	sortExec(s.exec)
	s.codes.clear()
	s.gen.Add(1)
}

// codeAt implements Target.Code. If the mappings may be old, again reads them once more and returns true.
func (s *space) codeAt(pc uint64, exact bool, again func() bool) (Code, bool) {
	key := codeKey{pc, exact}
	if c, ok := s.codes.get(key); ok {
		return c, true
	}
	at := pc
	if !exact {
		at-- // the call instruction, because the return address may belong to the next function
	}
	l, ok := findExec(s.exec, at)
	if !ok && again() {
		l, ok = findExec(s.exec, at)
	}
	if !ok {
		return s.codeOfNoFile(pc, at)
	}
	c := l.code(pc, at)
	s.codes.put(key, c)
	return c, true
}

// JITCode is the Image of code that is in no file, because the program has made the code itself. This may be a JIT
// compiler in a native library (V8, wasmtime, regular expressions), or libffi for a callback.
const JITCode = "JIT code"

// codeOfNoFile returns the Code of an address in executable memory that belongs to no file. The result is not cached,
// because such memory comes and goes without a new Generation.
func (s *space) codeOfNoFile(pc, at uint64) (Code, bool) {
	m, ok := findMapping(s.mappings, at)
	if !ok || m.Inode != 0 || m.Perm&PermExec == 0 || m.ofKernel() {
		return Code{}, false
	}
	return Code{Image: JITCode, Offset: pc - m.Start}, true
}

// ofKernel reports whether the kernel has made the mapping and its contents: [vsyscall], [uprobes], [vdso]. The heap,
// the stack and memory that the program has named do not count (get_vma_name in fs/proc/task_mmu.c).
func (m *Mapping) ofKernel() bool {
	return strings.HasPrefix(m.Path, "[") && !strings.HasPrefix(m.Path, "[anon") && m.Path != "[heap]" &&
		m.Path != "[stack]"
}

func (s *space) imageCalled(name string) (Image, bool) {
	l := s.findImage(name)
	if l == nil {
		return Image{}, false
	}
	l.place()
	return l.Image, true
}

func (s *space) globalOf(image, symbol string) (uint64, error) {
	l := s.findImage(image)
	if l == nil {
		return 0, ErrNoImage
	}
	return l.global(symbol)
}

func (s *space) findImage(name string) *loaded {
	for _, called := range []func(*loaded) string{(*loaded).name, (*loaded).ownName} {
		for _, l := range s.images {
			if called(l) == name {
				return l
			}
		}
	}
	return nil
}
