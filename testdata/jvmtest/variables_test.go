//go:build linux

package jvmtest

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// A name that ends in an underscore is a prefix, of which text speaks.
var variable = regexp.MustCompile(`\bGOPROF_[A-Z0-9_]*[A-Z0-9]\b`)

// TestVariables: CONTRIBUTING.md names every variable of the environment that this repository uses, and no other.
func TestVariables(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	const index = "CONTRIBUTING.md"
	used := map[string]string{}
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() && (name == ".git" || name == "build") {
			return filepath.SkipDir
		}
		if !mayUse(entry) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range variable.FindAllString(string(text), -1) {
			used[found] = path
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, index))
	if err != nil {
		t.Fatal(err)
	}
	listed := variable.FindAllString(string(text), -1)
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !slices.Contains(listed, name) {
			t.Errorf("%s is not in %s; it is used in %s", name, index, used[name])
		}
	}
	for _, name := range listed {
		if used[name] == "" {
			t.Errorf("%s is in %s, and nothing uses it", name, index)
		}
	}
}

// mayUse tells which files may use variables of the environment: programs, scripts and makefiles, but not pages.
func mayUse(entry fs.DirEntry) bool {
	return entry.Type().IsRegular() &&
		(slices.Contains([]string{".go", ".sh", ".txt", ".txtar", ".c", ".java"}, filepath.Ext(entry.Name())) ||
			slices.Contains([]string{"Makefile", "run", "quick"}, entry.Name()))
}
