package process

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"sort"
	"strings"
)

// A core lacks most memory that was mapped from files and never changed: code, constants, the class archive. goprof
// reads such memory from the files, if it can prove that they are the mapped files. For a library the proof is the
// build id, because the kernel writes the first page of each library into the core. For other files, the pages that the
// core has must agree with the file.

// MissingFile is a file that was needed and not found.
type MissingFile struct {
	Path    string // in the process's root
	BuildID string // empty if it is not known
	Err     error
}

var (
	errOtherBuild  = errors.New("the file that lies there is another build")
	errNoBuildID   = errors.New("its build id is not in the core, so no file can be proven to be it")
	errNotAgreeing = errors.New("nothing in the core proves that the file that lies there is the one that was mapped")
	errManyFiles   = errors.New("too many files")
	errNotMapped   = errors.New("process: no such mapping")
)

const (
	maxBacking = 1024 // files that are opened for one core
	maxSought  = 8192 // files that are searched for: some programs map tens of thousands
)

// backing reads the files that a core does not contain.
type backing struct {
	c      *Core
	opt    CoreOptions
	parts  []mappedPart
	named  map[string][]*mappedPart // the parts of each file, by its name
	files  map[string]*backingFile
	opened int
	last   dumpedHead
}

// dumpedHead has the headers of the previous file that are in the core. The parts of a file follow each other.
type dumpedHead struct {
	name string
	file *elfFile
}

// backingFile is one file. goprof looks for it once.
type backingFile struct {
	id     string // its build id in the core
	file   *os.File
	size   uint64
	source int // its number in coreCache
	progs  []elf.Prog64
	agreed agreement // for a file without a build id: the words that the core has, and those that agree
	err    error
}

func newBacking(c *Core, opt CoreOptions) *backing {
	b := &backing{c: c, opt: opt, parts: c.notes.files, named: map[string][]*mappedPart{},
		files: map[string]*backingFile{}}
	for i := range b.parts {
		p := &b.parts[i]
		b.named[p.path] = append(b.named[p.path], p)
	}
	return b
}

func (b *backing) close() {
	for _, f := range b.files {
		if f.file != nil {
			f.file.Close()
		}
	}
}

func (b *backing) missing() (list []MissingFile) {
	for name, f := range b.files {
		if f.err != nil {
			list = append(list, MissingFile{name, f.id, f.err})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Path < list[j].Path })
	return list
}

// read reads the beginning of buf from the file that was mapped at addr. If lost is true, these bytes were in the
// missing end of the core, and read reads only bytes that the process cannot have changed.
func (b *backing) read(addr uint64, buf []byte, lost bool) int {
	i, _ := slices.BinarySearchFunc(b.parts, addr, func(p mappedPart, a uint64) int {
		if p.end <= a {
			return -1
		}
		return 1
	})
	if i == len(b.parts) || b.parts[i].start > addr {
		return 0
	}
	p := &b.parts[i]
	f := b.open(p.path)
	off := p.offset + (addr - p.start)
	if f.err != nil || off < p.offset || off >= f.size || lost && f.changes(off) {
		return 0
	}
	n := int(min(uint64(len(buf)), p.end-addr, f.size-off))
	if b.c.bytes.readAt(f.source, buf[:n], off) != nil {
		return 0
	}
	return n
}

// changes reports whether the process may have changed the memory that is mapped from an offset of the file. The loader
// writes into all writable segments of a library, and makes some of them read-only afterwards.
func (f *backingFile) changes(off uint64) bool {
	for i := range f.progs {
		p := &f.progs[i]
		if elf.ProgType(p.Type) == elf.PT_LOAD && elf.ProgFlag(p.Flags)&elf.PF_W == 0 && off >= p.Off &&
			off-p.Off < p.Filesz {
			return false
		}
	}
	return true
}

// progsOf returns the program headers of a mapped file: from the core, or else from the file itself.
func (b *backing) progsOf(name string) []elf.Prog64 {
	if f := b.dumpedHead(name); f != nil {
		return f.progs
	}
	return b.open(name).progs
}

// dumpedHead reads the headers of a library that are in the core.
func (b *backing) dumpedHead(name string) *elfFile {
	if b.last.name == name && name != "" {
		return b.last.file
	}
	var pieces []Mapping
	parts := b.named[name]
	for _, p := range parts[:min(len(parts), maxPieces)] {
		pieces = append(pieces, Mapping{Start: p.start, End: p.end, Offset: p.offset, Perm: PermRead})
	}
	g := group{all: pieces}
	f, err := readELF(&mappedFile{dumped{b.c}, pieces}, g.mappedSize(), nil)
	if err != nil {
		f = nil
	}
	b.last = dumpedHead{name, f}
	return f
}

// open finds the file that was mapped under a name.
func (b *backing) open(name string) *backingFile {
	f := b.files[name]
	if f != nil {
		return f
	}
	if len(b.files) >= maxSought {
		return &backingFile{err: errManyFiles}
	}
	f = &backingFile{}
	b.files[name] = f
	if b.opened >= maxBacking {
		f.err = errManyFiles
		return f
	}
	belongs := b.agrees
	if head := b.dumpedHead(name); head != nil {
		id := head.buildID()
		f.id = hex.EncodeToString(id)
		belongs = func(name string, file *os.File, e *elfFile) error { return sameBuild(id, e) }
		if len(id) == 0 {
			belongs = b.sameHead
		}
	}
	f.err = os.ErrNotExist
	for _, place := range b.places(name, f.id) {
		file, size, err := openBelow(place.root, place.path)
		if err != nil {
			if f.err == os.ErrNotExist && !errors.Is(err, os.ErrNotExist) {
				f.err = err
			}
			continue
		}
		e, _ := readELF(file, size, nil) // nil: not an ELF file
		if err := belongs(name, file, e); err != nil {
			f.err = err
			file.Close()
			continue
		}
		b.opened++
		f.file, f.size, f.source, f.err = file, uint64(size), b.c.bytes.add(file), nil
		if e != nil {
			f.progs = e.progs
		}
		break
	}
	return f
}

// sameBuild returns nil if the file has that build id and the program's bytes. A debug file has the build id, but no
// bytes.
func sameBuild(id []byte, e *elfFile) error {
	if e == nil || !bytes.Equal(e.buildID(), id) {
		return errOtherBuild
	}
	if text := e.section(".text"); text != nil && elf.SectionType(text.Type) == elf.SHT_NOBITS {
		return errOtherBuild
	}
	return nil
}

// sameHead returns nil if the first page of the file equals the page in the core. It is used if a program's build id is
// not in that page (patchelf moves it). The page has the size and the offset of each segment, so it is the same in few
// other files.
func (b *backing) sameHead(name string, file *os.File, e *elfFile) error {
	if e == nil || len(e.buildID()) == 0 {
		return errNoBuildID
	}
	was, is := make([]byte, 4096), make([]byte, 4096)
	for _, p := range b.named[name] {
		if p.offset != 0 || (dumped{b.c}).Read(p.start, is) != nil {
			continue
		}
		if _, err := file.ReadAt(was, 0); err != nil || !bytes.Equal(was, is) {
			return errOtherBuild
		}
		return nil
	}
	return errNoBuildID
}

const (
	agreePages = 64 // pages of a file that are compared
	// At least leastAgreed words must be comparable, and agreePercent of them must be equal. The core has only the pages
	// that the JVM has changed. In the class archive of JDK 11, 55 % of their words still equal the file's. In another
	// file, few words do.
	agreePercent, leastAgreed = 50, 64
	maxMoves                  = 1 << 14 // differences that are counted
)

// agrees compares a file without a build id with the parts of it that are in the core.
func (b *backing) agrees(name string, file *os.File, e *elfFile) error {
	if e != nil {
		return errNoBuildID
	}
	words, pages := agreement{moved: map[uint64]int{}}, 0
	was, is := make([]byte, 4096), make([]byte, 4096)
	for _, p := range b.named[name] {
		step := max((p.end-p.start)/agreePages, 4096) &^ 4095
		for at := p.start; p.end-at >= step && pages < agreePages; at += step {
			if (dumped{b.c}).Read(at, is) != nil {
				continue
			}
			if _, err := file.ReadAt(was, int64(p.offset+(at-p.start))); err != nil {
				return errNotAgreeing // the file is shorter than the mapping
			}
			words.add(was, is)
			pages++
		}
	}
	b.files[name].agreed = words
	if words.all < leastAgreed || words.percent() < agreePercent {
		return errNotAgreeing
	}
	return nil
}

// agreement counts the words of a file without a build id that are equal in the core.
type agreement struct {
	all, same int
	// moved counts the words that differ, by their difference. The JVM maps its class archive at any address, and adds one
	// number to all pointers in it (cds/filemap.cpp, relocate_pointers). So words with the most frequent difference count
	// as equal.
	moved map[uint64]int
}

func (a *agreement) add(was, is []byte) {
	for i := 0; i+8 <= len(was); i += 8 {
		w, v := binary.LittleEndian.Uint64(was[i:]), binary.LittleEndian.Uint64(is[i:])
		if w == 0 { // the JVM writes to such words later
			continue
		}
		a.all++
		if w == v {
			a.same++
		} else if len(a.moved) < maxMoves || a.moved[v-w] > 0 {
			a.moved[v-w]++
		}
	}
}

func (a *agreement) percent() int {
	most := 0
	for _, n := range a.moved {
		most = max(most, n)
	}
	return (a.same + most) * 100 / max(a.all, 1)
}

// UnprovenFile is a file that was read because its content agrees with the core.
type UnprovenFile struct {
	Path           string
	Percent, Words int // the number of compared words, and the percentage of equal ones
}

func (b *backing) unproven() (list []UnprovenFile) {
	for name, f := range b.files {
		if f.err == nil && f.agreed.all > 0 {
			list = append(list, UnprovenFile{name, f.agreed.percent(), f.agreed.all})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Path < list[j].Path })
	return list
}

// place is a place where a file may be: a path below a folder.
type place struct{ root, path string }

// places returns the places where goprof looks for a mapped file: the file's own path, and the folders for debug files
// by build id, by path and by name.
func (b *backing) places(name, id string) []place {
	if !path.IsAbs(name) {
		return nil
	}
	list := []place{{cmp.Or(b.opt.Root, "/"), path.Clean(name)}}
	for _, dir := range b.opt.DebugDirs {
		if len(id) > 2 {
			list = append(list, place{dir, "/.build-id/" + id[:2] + "/" + id[2:]})
		}
		list = append(list, place{dir, path.Clean(name)}, place{dir, "/" + path.Base(name)})
	}
	return list
}

// coreFiles opens the files of a core's images.
type coreFiles struct{ *Core }

func (c coreFiles) openImage(g *group) (imageFile, int64, error) {
	f := c.backing.open(g.Path)
	if f.err != nil {
		return nil, 0, f.err
	}
	return keptOpen{c.bytes.source(f.source)}, int64(f.size), nil
}

type keptOpen struct{ io.ReaderAt }

func (keptOpen) Close() error { return nil }

func (c coreFiles) openDebug(name string, where debugRoot) (imageFile, int64, error) {
	places := []place{{cmp.Or(c.backing.opt.Root, "/"), name}}
	if where == onHost {
		places = nil
		for _, dir := range c.backing.opt.DebugDirs {
			places = append(places, place{dir, "/" + strings.TrimPrefix(name, "/usr/lib/debug/")})
		}
		places = append(places, place{"/", name})
	}
	for _, p := range places {
		if file, size, err := openBelow(p.root, p.path); err == nil {
			return file, size, nil
		}
	}
	return nil, 0, errNotMapped
}

func (c coreFiles) inRoot(name string) string { return name }
