//go:build linux

package diagnose

import (
	"io"
	"path"
	"strings"

	"goprof/process"
)

// maxRelease limits the size of a JDK's file "release", which has some 2 KB.
const maxRelease = 64 << 10

// Vendor returns the vendor of an open process's JVM, or "" if it is not known. It reads a file of the target, so it
// may hang.
func Vendor(p *process.Process) string {
	if image, ok := p.Image("libjvm.so"); ok {
		return vendor(p, image.Path)
	}
	return ""
}

// vendor returns the vendor of a JVM: IMPLEMENTOR in the file "release" at the root of its JDK, two or three folders
// above libjvm.so (lib/server, jre/lib/amd64/server). The target chooses the path, so goprof resolves it only inside
// the target's root.
func vendor(p *process.Process, library string) string {
	for dir, up := path.Dir(library), 0; up < 5 && dir != "/"; dir, up = path.Dir(dir), up+1 {
		text, ok := readSmall(p, path.Join(dir, "release"))
		if !ok {
			continue
		}
		return vendorIn(text)
	}
	return ""
}

func vendorIn(release string) string {
	for line := range strings.Lines(release) {
		if value, ok := strings.CutPrefix(line, "IMPLEMENTOR="); ok {
			return strings.ToValidUTF8(strings.Trim(strings.TrimSpace(value), `"`), "\uFFFD")
		}
	}
	return ""
}

// readSmall reads a small regular file in a process's root.
func readSmall(p *process.Process, name string) (string, bool) {
	f, _, err := p.OpenPath(name)
	if err != nil {
		return "", false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRelease))
	return string(b), err == nil
}
