//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"goprof/output/convert"
	"goprof/output/format"
)

// TestBefore: of an agent's folder a snap takes the CPU time of its own process, of the last five minutes.
func TestBefore(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"20261129T055459Z-0000-7-shop.pb.gz": "main;old 1\n",
		"20261129T055500Z-0000-7-shop.pb.gz": "main;a 2\nmain;b 1\n",
		"20261129T055515Z-0001-7-shop.pb.gz": "main;a 3\n",
		"20261129T055515Z-0000-8-shop.pb.gz": "main;other 1\n",
		"20261129T055530Z-0000-7-shop.pb.gz": "",
		"notes.txt":                          "main;none 1\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	src, err := openBefore(dir, 7, time.Date(2026, 11, 29, 5, 55, 0, 0, time.UTC))
	defer src.close()
	if err == nil || len(src) != 2 {
		t.Fatalf("%d files, %v: one of three is empty", len(src), err)
	}
	var b bytes.Buffer
	_, err = convert.Write(&b, format.Collapsed, src, convert.Options{})
	if err != nil || b.String() != "main;a 5\nmain;b 1\n" {
		t.Errorf("%v %s", err, &b)
	}
	if src, err := openBefore(filepath.Join(dir, "none"), 7, time.Time{}); err == nil || len(src) > 0 {
		t.Errorf("%d files of a folder that is not there", len(src))
	}
}
