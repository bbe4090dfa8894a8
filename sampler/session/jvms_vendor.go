//go:build linux

package session

import (
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"goprof/target"
)

// maxRelease bounds the file "release" of a JDK: it has some 2 KB.
const maxRelease = 64 << 10

// vendor tells who built a JVM: IMPLEMENTOR in the file "release" at the root of its JDK,
// two or three folders above libjvm.so (lib/server, jre/lib/amd64/server). The path is
// the target's word, so it is followed inside the target's root only.
func vendor(p *target.Process, library string) string {
	for dir, up := path.Dir(library), 0; up < 5 && dir != "/"; dir, up = path.Dir(dir), up+1 {
		text, ok := readInRoot(p.PID(), path.Join(dir, "release"))
		if !ok {
			continue
		}
		for line := range strings.Lines(text) {
			if value, ok := strings.CutPrefix(line, "IMPLEMENTOR="); ok {
				return strings.ToValidUTF8(strings.Trim(strings.TrimSpace(value), `"`), "\uFFFD")
			}
		}
		return ""
	}
	return ""
}

// readInRoot reads a small regular file in a process's root; links cannot lead out of it,
// and no device or pipe is opened.
func readInRoot(pid int, name string) (string, bool) {
	root, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/root", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", false
	}
	defer unix.Close(root)
	path, err := unix.Openat2(root, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return "", false
	}
	defer unix.Close(path)
	var st unix.Stat_t
	if unix.Fstat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return "", false
	}
	f, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(path), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return "", false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxRelease))
	return string(b), err == nil
}
