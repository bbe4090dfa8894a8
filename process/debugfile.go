package process

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"io"
	"path"
	"slices"
)

// maxDebugFile bounds a file whose checksum is computed for .gnu_debuglink.
const maxDebugFile = 2 << 30

// debugRoot is the root below which goprof looks for a debug file.
type debugRoot uint8

const (
	inTarget debugRoot = iota
	onHost
)

// debugSymbols looks for a separate debug file, as gdb does (GDB manual, "Debugging Information in Separate Files"): by
// build id first, then by the name in .gnu_debuglink.
//
// The target chose the name in .gnu_debuglink, and the image's folder. So goprof looks for that name in the target's
// root only. Otherwise a container's library /etc/libjvm.so could name "shadow", and goprof would open the host's
// /etc/shadow. A target without a root of its own has the host's root. A build id is safe in any root, because it is a
// name of hexadecimal digits in the folder for debug files.
func (l *loaded) debugSymbols(f *elfFile) *symtab {
	id := f.buildID()
	if name := buildIDPath(id); name != "" {
		for _, where := range []debugRoot{inTarget, onHost} {
			if t := l.openDebugFile(name, where, func(d *elfFile) bool { return bytes.Equal(d.buildID(), id) }); t != nil {
				return t
			}
		}
	}
	link, sum, ok := f.debugLink()
	if !ok {
		return nil
	}
	own := l.files.inRoot(l.Path)
	for _, name := range debugLinkPaths(own, link) {
		belongs := func(d *elfFile) bool { return l.sums.spend(d.size) && d.checksum() == sum }
		if t := l.openDebugFile(name, inTarget, belongs); t != nil {
			return t
		}
	}
	return nil
}

// debugLinkPaths returns the paths at which the debug file of an image may be, by its name.
func debugLinkPaths(image, link string) (paths []string) {
	dir := path.Dir(image)
	paths = []string{path.Join(dir, link), path.Join(dir, ".debug", link), path.Join("/usr/lib/debug", dir, link)}
	return slices.DeleteFunc(paths, func(name string) bool { return name == image })
}

// openDebugFile reads the symbols of a debug file if it belongs to the image.
func (l *loaded) openDebugFile(name string, where debugRoot, belongs func(*elfFile) bool) *symtab {
	file, size, err := l.files.openDebug(name, where)
	if err != nil {
		return nil
	}
	defer file.Close()
	d, err := readELF(file, size, l.budget)
	if err != nil || size > maxDebugFile || !belongs(d) {
		return nil
	}
	return d.readSymtab(".symtab")
}

func buildIDPath(id []byte) string {
	if len(id) < 2 {
		return ""
	}
	s := hex.EncodeToString(id)
	return "/usr/lib/debug/.build-id/" + s[:2] + "/" + s[2:] + ".debug"
}

// debugLink reads .gnu_debuglink: a file name, zeros up to a multiple of 4, and the CRC-32 of that file. ok is false if
// the name is not a plain file name.
func (f *elfFile) debugLink() (name string, sum uint32, ok bool) {
	s := f.section(".gnu_debuglink")
	if s == nil || s.Size > 4096 {
		return "", 0, false
	}
	b, err := f.data(s)
	if err != nil {
		return "", 0, false
	}
	raw := cstring(b, 0)
	at := (len(raw) + 1 + 3) &^ 3
	if len(raw) == 0 || len(b) < at+4 || bytes.ContainsRune(raw, '/') || string(raw) == ".." || string(raw) == "." {
		return "", 0, false
	}
	return string(raw), binary.LittleEndian.Uint32(b[at:]), true
}

// checksum computes the CRC-32 of the whole file. It returns 0 if the file cannot be read.
func (f *elfFile) checksum() uint32 {
	h := crc32.NewIEEE()
	if _, err := io.Copy(h, io.NewSectionReader(f.r, 0, int64(f.size))); err != nil {
		return 0
	}
	return h.Sum32()
}
