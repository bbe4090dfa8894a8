package vmstructs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestTested(t *testing.T) {
	lines := 0
	for line := range strings.Lines(releases) {
		if line[0] != '#' {
			lines++
		}
	}
	all := TestedReleases()
	if len(all) == 0 || len(all) != lines || !slices.IsSorted(all) {
		t.Fatalf("%d lines give the releases %v", lines, all)
	}
	for _, r := range tested() {
		if !(Version{Major: r.major}).Tested() {
			t.Errorf("JDK %d", r.major)
		}
		for _, cpu := range r.cpus {
			if _, err := os.Stat("../arch/" + cpu + "/cpu.go"); err != nil {
				t.Errorf("JDK %d: %v", r.major, err)
			}
		}
	}
	if (Version{Major: 6}).Tested() || (Version{}).Tested() {
		t.Error("a release that nobody tests counts as tested")
	}
}

// TestOneListOfReleases: all scripts and tests take the list of releases from releases.txt.
func TestOneListOfReleases(t *testing.T) {
	files, err := filepath.Glob("../scripts/*.sh")
	if err != nil || len(files) < 5 {
		t.Fatalf("%d scripts: %v", len(files), err)
	}
	list := regexp.MustCompile(`\b8[ ,]+11[ ,]+17\b|\b21[ ,]+25[ ,]+2[67]\b|\b8 to 2\d`)
	for _, file := range append(files, "../Makefile", "../.ci/run") {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if m := list.Find(b); m != nil {
			t.Errorf("%s has a list of its own: %q", file, m)
		}
	}
}
