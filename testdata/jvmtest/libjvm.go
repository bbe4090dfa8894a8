//go:build linux

package jvmtest

import (
	"debug/elf"
	"os"
	"path/filepath"
	"testing"
)

// Library is the path of the JDK's libjvm.so.
func (j JDK) Library(t testing.TB) string {
	t.Helper()
	for _, dir := range []string{"lib/server", "jre/lib/*/server"} { // up to 8 by CPU
		if found, _ := filepath.Glob(filepath.Join(j.Home, dir, "libjvm.so")); len(found) > 0 {
			path, err := filepath.EvalSymlinks(found[0])
			if err != nil {
				t.Fatal(err)
			}
			return path
		}
	}
	t.Fatalf("%v has no libjvm.so below %s", j, j.Home)
	return ""
}

// Stripped tells whether libjvm.so has no symbols but those that it exports.
func (j JDK) Stripped(t testing.TB) bool {
	t.Helper()
	f, err := os.Open(j.Library(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	image, err := elf.NewFile(f)
	if err != nil {
		t.Fatal(err)
	}
	return image.Section(".symtab") == nil
}
