//go:build linux

package jvmtest

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"
)

// PublicJar packs the test programs into a jar that every user can read.
func PublicJar(t testing.TB, name, main string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "goprof-jar-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	jar := zip.NewWriter(f)
	manifest, err := jar.Create("META-INF/MANIFEST.MF")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := manifest.Write([]byte("Manifest-Version: 1.0\r\nMain-Class: " + main + "\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	if err := jar.AddFS(os.DirFS(Classes(t))); err != nil {
		t.Fatal(err)
	}
	if err := jar.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, f.Name()} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return f.Name()
}
