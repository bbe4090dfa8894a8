//go:build linux

package process

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrOtherFile: the mapped file was replaced by another one.
var ErrOtherFile = errors.New("process: the file at that path is not the one that is mapped")

// openImage opens a mapped file. It returns ErrGone if the process ends before openImage returns, because its pid may
// then lead to files of another process.
func (p *Process) openImage(g *group) (imageFile, int64, error) {
	f, size, err := p.openMapped(g)
	if gone := p.Alive(); gone != nil {
		if err == nil {
			f.Close()
		}
		return nil, 0, gone
	}
	return f, size, err
}

// openMapped opens a mapped file. /proc/PID/map_files leads to the file itself, even if it was deleted. But only a
// process with the right to checkpoint others can use these links. Otherwise goprof opens the path inside the target's
// root, and checks that the file is the mapped one.
func (p *Process) openMapped(g *group) (imageFile, int64, error) {
	if g.first.Inode == 0 {
		return nil, 0, errNotRegular
	}
	link := p.file("map_files/" + strconv.FormatUint(g.first.Start, 16) + "-" + strconv.FormatUint(g.first.End, 16))
	if !p.noMapFiles {
		if f, size, err := OpenKernelLink(link); err == nil {
			return f, size, nil
		}
	}
	f, size, err := p.OpenPath(g.Path)
	if err != nil {
		return nil, 0, err
	}
	if !p.isMapped(f, size, g) {
		f.Close()
		return nil, 0, ErrOtherFile
	}
	return f, size, nil
}

// Unopened is an image whose file could not be opened. goprof reads the image in the target's memory instead, without
// the symbols that the image does not export.
type Unopened struct {
	Image
	Err error
}

// Unopened lists the images that could not be opened when a symbol was needed, while the process lived.
func (p *Process) Unopened() []Unopened {
	if !p.lock() {
		return nil
	}
	defer p.mu.Unlock()
	var list []Unopened
	for _, l := range p.images {
		if l.hasSym && !l.full && l.noFile != nil && !errors.Is(l.noFile, ErrGone) {
			list = append(list, Unopened{l.Image, l.noFile})
		}
	}
	return list
}

// HasSection reports whether the file of an image has a section of that name.
func (p *Process) HasSection(image, section string) (has bool) {
	if !p.lock() {
		return false
	}
	defer p.mu.Unlock()
	if l := p.findImage(image); l != nil {
		l.with(func(f *elfFile) { has = f.section(section) != nil })
	}
	return has
}

// OpenPath opens a regular file below the target's root by a path of Mappings. The path may meanwhile lead to another
// file than the mapped one.
func (p *Process) OpenPath(path string) (*os.File, int64, error) {
	return openForeign(p.file("root"), p.inRoot(path))
}

// inRoot converts a path of Mappings to a path below the target's root. The kernel writes paths from goprof's root. If
// a mount cannot be reached from there, it writes them from the root of the mount namespace (fs/d_path.c,
// prepend_path). The root of a target in a chroot is further down, at the path in the link /proc/PID/root, which
// follows the same rule.
func (p *Process) inRoot(path string) string {
	root, err := os.Readlink(p.file("root"))
	if err != nil || root == "/" {
		return path
	}
	if inside, ok := strings.CutPrefix(path, root+"/"); ok {
		return "/" + inside
	}
	return path
}

// isMapped compares the build id of a file with that in the target's memory. If neither has a build id, device and
// inode must agree.
func (p *Process) isMapped(f *os.File, size int64, g *group) bool {
	file, err := readELF(f, size, nil)
	if err != nil {
		return false
	}
	mapped, err := readELF(&mappedFile{p, g.all}, g.mappedSize(), nil)
	if err != nil {
		return false
	}
	id := mapped.buildID()
	if len(id) > 0 || len(file.buildID()) > 0 {
		return bytes.Equal(id, file.buildID())
	}
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil {
		return false
	}
	dev := uint64(unix.Major(st.Dev))<<32 | uint64(unix.Minor(st.Dev))
	return st.Ino == g.first.Inode && dev == g.first.Dev
}

func (p *Process) openDebug(path string, where debugRoot) (imageFile, int64, error) {
	root := hostRoot
	if where == inTarget {
		root = p.file("root")
	}
	return openForeign(root, path)
}
