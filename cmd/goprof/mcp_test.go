package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"goprof/cmd/goprof/internal/tools"
	"goprof/cmd/goprof/mcp"
	"goprof/output/snap"
)

// TestMCPForeignSnap: a snap that the server has not made is read without the names of its recording.
func TestMCPForeignSnap(t *testing.T) {
	goprof, err := exec.LookPath("goprof")
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	recorded := filepath.Join(t.TempDir(), "a.jfr")
	writeParts(recorded, check)
	content, err := os.ReadFile(recorded)
	check(err)
	var zip bytes.Buffer
	w := snap.NewWriter(&zip)
	check(w.Add(snap.Recording, func(to io.Writer) error {
		_, err := to.Write(content)
		return err
	}))
	check(w.Close(&snap.Contents{}))
	check(os.WriteFile(filepath.Join(dir, "mine.zip"), zip.Bytes(), 0o600))
	for _, names := range []bool{true, false} {
		m, err := tools.Open(goprof, dir, names)
		check(err)
		defer m.Close()
		for _, tool := range m.Tools() {
			if tool.Name != "report" {
				continue
			}
			text, err := tool.Call(context.Background(), mcp.Args{"file": "mine.zip", "by": "class", "event": "lock"})
			if err != nil || strings.Contains(text, "shop.Main") != names || !strings.Contains(text, "%") {
				t.Errorf("names %v: %q %v", names, text, err)
			}
		}
	}
}
