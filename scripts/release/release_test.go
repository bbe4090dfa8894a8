package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNoticesAreComplete: the notices in the binary are those of the modules that are linked today.
func TestNoticesAreComplete(t *testing.T) {
	modules, err := linked("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(modules) < 10 {
		t.Errorf("only %d modules are linked", len(modules))
	}
	var now bytes.Buffer
	if err := writeNotices(&now, modules); err != nil {
		t.Fatal(err)
	}
	const name = "../../cmd/goprof/THIRD_PARTY_NOTICES"
	kept, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(kept, now.Bytes()) {
		t.Errorf("%s is out of date: go run ./scripts/release notices >cmd/goprof/THIRD_PARTY_NOTICES", name)
	}
	for _, m := range modules {
		if !bytes.Contains(kept, []byte(m.name()+": ")) {
			t.Errorf("%s has no text", m.name())
		}
	}
}

func TestUnknownLicenseIsRefused(t *testing.T) {
	dir := t.TempDir()
	m := &module{path: "example.org/secret", version: "v1.0.0", dir: dir}
	m.addTexts(dir)
	if id, err := m.identify(); err == nil {
		t.Errorf("a module without a licence has %q", id)
	}
	write(t, filepath.Join(dir, "LICENSE"), "All rights reserved.")
	m.addTexts(dir)
	if id, err := m.identify(); err == nil {
		t.Errorf("a licence that is not known has %q", id)
	}
	write(t, filepath.Join(dir, "sub", "COPYING.txt"), "Permission is hereby granted,\n free of charge, to any")
	m.addTexts(filepath.Join(dir, "sub"))
	if id, err := m.identify(); err != nil || id != "MIT" {
		t.Errorf("%q, %v; want MIT of the folder of a package", id, err)
	}
}

func TestLicensesIn(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"Apache License\n  Version 2.0, January 2004", "Apache-2.0"},
		{"Redistributions in binary form must reproduce", "BSD-2-Clause"},
		{"Redistributions in binary form must reproduce ... Neither the\nname of", "BSD-3-Clause"},
		{"GNU GENERAL PUBLIC LICENSE", ""},
	} {
		if got := strings.Join(licensesIn([]byte(c.text)), " "); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// TestStatements reads what is said of this test's own binary, which is built of this module.
func TestStatements(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := writeSBOM(&b, self, []*module{{path: goModule, license: "BSD-3-Clause"}}); err != nil {
		t.Fatal(err)
	}
	var bom struct {
		BomFormat, SpecVersion string
		Metadata               struct{ Component struct{ Name string } }
		Components             []struct{ Name, Version, Purl string }
	}
	if err := json.Unmarshal(b.Bytes(), &bom); err != nil || bom.BomFormat != "CycloneDX" ||
		bom.Metadata.Component.Name != "goprof" || len(bom.Components) != 1 ||
		!strings.HasPrefix(bom.Components[0].Purl, "pkg:golang/std@1.") {
		t.Errorf("%+v, %v", bom, err)
	}
	b.Reset()
	if err := writeProvenance(&b, []string{self}); err != nil {
		t.Fatal(err)
	}
	var statement struct {
		Subject []struct {
			Digest struct{ Sha256 string }
		}
	}
	if err := json.Unmarshal(b.Bytes(), &statement); err != nil || len(statement.Subject) != 1 ||
		len(statement.Subject[0].Digest.Sha256) != 64 {
		t.Errorf("%+v, %v", statement, err)
	}
	if err := writeSBOM(&b, "release_test.go", nil); err == nil {
		t.Error("a file that is no binary has a list of modules")
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
