package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImage reads an image as a container engine does. Each digest and size is right, and each CPU has its binary.
func TestImage(t *testing.T) {
	dir := t.TempDir()
	var args []string
	for _, cpu := range []string{"amd64", "arm64"} {
		file := filepath.Join(dir, cpu)
		if err := os.WriteFile(file, []byte("the binary for "+cpu), 0o755); err != nil {
			t.Fatal(err)
		}
		args = append(args, cpu+"="+file)
	}
	out, again := filepath.Join(dir, "image"), filepath.Join(dir, "again")
	for _, name := range []string{out, again} {
		if err := run(name, "1.2", args); err != nil {
			t.Fatal(err)
		}
	}
	var top, all index
	parse(t, filepath.Join(out, "index.json"), &top)
	blob(t, out, top.Manifests[0], &all)
	if len(all.Manifests) != 2 {
		t.Fatalf("%+v", all)
	}
	for _, m := range all.Manifests {
		var one manifest
		var about image
		blob(t, out, m, &one)
		blob(t, out, one.Config, &about)
		files := unpack(t, blob(t, out, one.Layers[0], nil))
		if about.platform != *m.Platform || about.RootFS.DiffIDs[0] != digestOf(files) {
			t.Errorf("%+v of %+v", about, m)
		}
		r := tar.NewReader(bytes.NewReader(files))
		h, err := r.Next()
		if err != nil || h.Name != "tmp/" || h.Mode != 0o1777 {
			t.Errorf("%+v, %v", h, err)
		}
		h, err = r.Next()
		if err != nil || h.Name != "goprof" || h.Mode != 0o755 || h.Uid != 0 || about.Config.Entrypoint[0] != "/goprof" {
			t.Errorf("%+v, %v, %+v", h, err, about.Config)
		}
		if text, _ := io.ReadAll(r); string(text) != "the binary for "+about.Architecture {
			t.Errorf("%q is for %s", text, about.Architecture)
		}
		if _, err := r.Next(); err != io.EOF {
			t.Errorf("there is more in it: %v", err)
		}
	}
	one, _ := os.ReadFile(filepath.Join(out, "index.json"))
	if two, _ := os.ReadFile(filepath.Join(again, "index.json")); !bytes.Equal(one, two) {
		t.Error("the same binaries give another image")
	}
	if err := run(out, "", args); err == nil {
		t.Error("an image that is there is written over")
	}
}

// blob reads the bytes of a descriptor, and checks their size and digest.
func blob(t *testing.T, dir string, d descriptor, into any) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "blobs", "sha256", strings.TrimPrefix(d.Digest, "sha256:")))
	if err != nil {
		t.Fatal(err)
	}
	if digestOf(text) != d.Digest || len(text) != d.Size {
		t.Errorf("%+v is %s of %d bytes", d, digestOf(text), len(text))
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			t.Fatal(err)
		}
	}
	return text
}

func parse(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func unpack(t *testing.T, packed []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return files
}
