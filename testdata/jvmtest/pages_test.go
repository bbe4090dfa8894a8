//go:build linux

package jvmtest

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A page of the manual says what a user does and gets; a decision has two pages; ARCHITECTURE.md one drawing and the
// way of one sample. What proves them stands in docs/evidence, which has no limit.
var limits = []struct {
	pages string
	words int
}{
	{"ARCHITECTURE.md", 1500},
	{"README.md", 1500},
	{"docs/*.md", 1500},
	{"docs/contributing/*.md", 1500},
	{"docs/decisions/*.md", 900},
}

var aWord = regexp.MustCompile(`[\pL\pN]`)

// words counts what stands between blanks and has a letter or a digit: borders of tables are no words.
func words(text string) int {
	n := 0
	for field := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \n\t|", r) }) {
		if aWord.MatchString(field) {
			n++
		}
	}
	return n
}

// TestPagesAreShort: the pages of the manual, decisions and ARCHITECTURE.md keep their limits.
func TestPagesAreShort(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range limits {
		pages, err := filepath.Glob(filepath.Join(root, limit.pages))
		if err != nil || len(pages) == 0 {
			t.Fatalf("%s: %d pages, %v", limit.pages, len(pages), err)
		}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			if n := words(string(text)); n > limit.words {
				t.Errorf("%s has %d words, more than %d: what proves it belongs to docs/evidence",
					filepath.Base(page), n, limit.words)
			}
		}
	}
}

func TestWords(t *testing.T) {
	for text, want := range map[string]int{
		"":                              0,
		"one two\nthree":                3,
		"| a | b |\n|---|---|\n|c|d|":   4,
		"`--pid 1` – [a](b.md), e.g. →": 4,
	} {
		if got := words(text); got != want {
			t.Errorf("%q: %d words, not %d", text, got, want)
		}
	}
}

// TestPagesAreFound: each page of the manual and of the evidence can be reached by links from README.md, and each page
// that a script, a message or another file names is there.
func TestPagesAreFound(t *testing.T) {
	tr := readTree(t)
	reached := map[string]bool{}
	var follow func(page string)
	follow = func(page string) {
		if reached[page] {
			return
		}
		reached[page] = true
		for _, m := range aLink.FindAllStringSubmatch(tr.text[page], -1) {
			to, _, _ := strings.Cut(m[1], "#")
			if to = path.Join(path.Dir(page), to); strings.HasSuffix(to, ".md") {
				follow(to)
			}
		}
	}
	follow("README.md")
	for page := range tr.text {
		if strings.HasPrefix(page, "docs/") && !strings.HasPrefix(page, "docs/decisions/") && !reached[page] {
			t.Errorf("no link leads to %s", page)
		}
	}
	pagesNamed(t, func(file string, line int, name string) {
		if !tr.isPage(name) {
			t.Errorf("%s:%d names %s, which is not there", file, line, name)
		}
	})
}

// aPage is the name of a page as all kinds of files have it: docs/top.md, docs/decisions/0004.
var aPage = regexp.MustCompile(`\bdocs/(?:decisions/\d{4}|[\w/-]+\.md)`)

// isPage tells whether name is a page. A decision may be named by its number alone.
func (tr *tree) isPage(name string) bool {
	if tr.ends[name] {
		return true
	}
	for page := range tr.text {
		if strings.HasPrefix(page, name+"-") {
			return true
		}
	}
	return false
}

// pagesNamed calls f with each name of a page that a file of the repository has, in its code, messages or comments.
func pagesNamed(t *testing.T, f func(file string, line int, name string)) {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{".go": true, ".sh": true, ".c": true, ".java": true, ".md": true, ".yaml": true,
		".service": true, ".txt": true, ".txtar": true, "": true}
	err = filepath.WalkDir(root, func(full string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "build") {
			return filepath.SkipDir
		}
		info, err := entry.Info()
		if err != nil || !entry.Type().IsRegular() || info.Size() > 1<<20 || !kinds[path.Ext(entry.Name())] {
			return err
		}
		text, err := os.ReadFile(full)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, full)
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			for _, page := range aPage.FindAllString(line, -1) {
				f(name, number, page)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
