//go:build linux

package diagnose

import (
	"os"
	"strings"
	"testing"
)

// FuzzProc: a process chooses some text in the files of /proc (its name, its command line, the names of mapped
// files). None of that misleads goprof.
func FuzzProc(f *testing.F) {
	for _, file := range []string{"/proc/self/cmdline", "/proc/self/maps"} {
		if b, err := os.ReadFile(file); err == nil {
			f.Add(b)
		}
	}
	f.Add([]byte("java\x00-cp\x00a\x00-jar\x00my app.jar\x00x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		argv := strings.Split(string(b), "\x00")
		c := parseJavaCommand(argv)
		words := len(c.options) + len(c.args)
		if c.main != "" {
			words++
		}
		if words > len(argv) {
			t.Errorf("%q has more words than %q", c, argv)
		}
		command := strings.Join(argv, " ")
		if main, args := splitCommand(command, argv); len(main) > len(command) ||
			len(args) > len(strings.Fields(command))+len(argv) {
			t.Errorf("%q %q", main, args)
		}
		older(string(b), needProbes.since)
		commandOf := Host{Command: string(b)}
		if got := commandOf.instead(1, 2); got == "" {
			t.Error("no command")
		}
	})
}

// FuzzLibraries: maps may hold any file names.
func FuzzLibraries(f *testing.F) {
	f.Add([]byte(mapsOf("/opt/java", "/opt/libjvm.so", "/opt/libj9vm29.so (deleted)")))
	f.Add([]byte("/libjvm.so\n/"))
	dir := f.TempDir()
	if err := os.MkdirAll(dir+"/77", 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := os.WriteFile(dir+"/77/maps", b, 0o600); err != nil {
			t.Fatal(err)
		}
		libs, _ := Host{Proc: dir}.libraries(77)
		if libs.kind == hotSpot && !strings.Contains(string(b), "/libjvm.so") {
			t.Errorf("%+v", libs)
		}
	})
}
