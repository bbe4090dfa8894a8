//go:build linux

package diagnose

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// containerName is a name that a container may have in output: goprof shows it, and users copy it.
var containerName = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_.\\-]{0,63}$`)

// FuzzCgroup reads arbitrary text as /proc/PID/cgroup: whoever runs the container chooses the names in its paths. A
// container's id is found at any place of a line of its own.
func FuzzCgroup(f *testing.F) {
	id := strings.Repeat("0123456789abcdef", 4)
	f.Add("0::/system.slice/docker-"+id+".scope\n", "docker-")
	f.Add("1:cpu:/\n0::/kubepods/burstable/pod1/"+id+"\n", "/")
	f.Add("0::/lxc.payload.web/init.scope\n", "libpod-")
	f.Add("0::/machine.slice/machine-a\\x2db.scope\n", "x")
	f.Fuzz(func(t *testing.T, text, before string) {
		if name := containerOf([]byte(text)); name != "" && (!containerName.MatchString(name) ||
			!strings.Contains(text, name)) {
			t.Fatalf("%q of %q", name, text)
		}
		// On both sides of the id stands a byte that is neither a digit nor a letter.
		if strings.ContainsAny(before, "\n") {
			return
		}
		line := "0::/" + before + "/" + id + ".scope\n"
		if got := containerOf([]byte(line)); got != id[:12] {
			t.Fatalf("%q of %q", got, line)
		}
	})
}

// FuzzRelease reads arbitrary text as a JDK's file "release", which belongs to the container.
func FuzzRelease(f *testing.F) {
	f.Add("JAVA_VERSION=\"17\"\nIMPLEMENTOR=\"Eclipse Adoptium\"\n", "Debian")
	f.Add("IMPLEMENTOR=\xff\"\"\r\nIMPLEMENTOR=second", "a\x1b[2J")
	f.Fuzz(func(t *testing.T, text, name string) {
		if got := vendorIn(text); !utf8.ValidString(got) || len(got) > 3*len(text) || strings.Contains(got, "\n") {
			t.Fatalf("%q of %q", got, text)
		}
		if strings.ContainsAny(name, "\n\"") || strings.TrimSpace(name) != name || !utf8.ValidString(name) ||
			strings.Contains(text, "IMPLEMENTOR=") {
			return
		}
		if text != "" && !strings.HasSuffix(text, "\n") {
			text += "\n"
		}
		if got := vendorIn(text + "IMPLEMENTOR=\"" + name + "\"\n"); got != name {
			t.Fatalf("%q, want %q", got, name)
		}
	})
}
