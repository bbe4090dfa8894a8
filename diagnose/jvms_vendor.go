//go:build linux

package diagnose

import (
	"io"
	"path"
	"strings"

	"goprof/process"
)

// maxRelease bounds the file "release" of a JDK: it has some 2 KB.
const maxRelease = 64 << 10

// Vendor returns who built the JVM of an open process, "" if that is not known. It reads a file of the target, and this
// read may hang.
func Vendor(p *process.Process) string {
	if image, ok := p.Image("libjvm.so"); ok {
		return vendor(p, image.Path)
	}
	return ""
}

// vendor returns who built a JVM: IMPLEMENTOR in the file "release" at the root of its JDK, two or three folders above
// libjvm.so (lib/server, jre/lib/amd64/server). The target chooses the path, so goprof follows it inside the target's
// root only.
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
