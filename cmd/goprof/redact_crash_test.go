package main

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goprof/profile/redact"
	"goprof/triage/hserr"
)

// TestRedactedCrash: triage finds in a redacted crash file what it finds in the file itself.
func TestRedactedCrash(t *testing.T) {
	files, _ := filepath.Glob("../../triage/hserr/testdata/*.txt")
	if len(files) < 20 {
		t.Fatalf("only %d crash files are there", len(files))
	}
	by := redact.New(redact.Default(), []byte("the key of these tests"))
	for _, name := range files {
		file, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var redacted strings.Builder
		for lines := bufio.NewScanner(bytes.NewReader(file)); lines.Scan(); {
			redacted.WriteString(by.Line(lines.Text()) + "\n")
		}
		want, got := crashFindings(t, string(file)), crashFindings(t, redacted.String())
		if !slices.Equal(want, got) {
			t.Errorf("%s: %v, redacted %v", name, want, got)
		}
	}
}

func crashFindings(t *testing.T, text string) (names []string) {
	report, err := hserr.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range hserr.Judge(report).Findings {
		names = append(names, string(f.ID))
	}
	return names
}
