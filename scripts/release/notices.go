package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is a module whose code is in the binary, with the files that state its licence.
type module struct {
	path, version string
	dir           string
	texts         []string // paths of the licence files, below dir
	license       string   // SPDX's name for it
}

// goModule is the module that stands for Go's standard library and runtime.
const goModule = "std"

// linked returns the modules whose code is in goprof, on all CPUs that it is built for, sorted by path. goprof itself
// and Go's library are among them.
func linked(root string) ([]*module, error) {
	found := map[string]*module{}
	for _, cpu := range []string{"amd64", "arm64"} {
		cmd := exec.Command("go", "list", "-deps", "-f",
			"{{.Dir}}\t{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{else}}std\t\t{{$.Root}}{{end}}", "./cmd/goprof")
		cmd.Dir, cmd.Stderr = root, os.Stderr
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+cpu, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		for line := range strings.Lines(string(out)) {
			f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			if len(f) != 4 {
				return nil, fmt.Errorf("go list says %q", line)
			}
			m := found[f[1]]
			if m == nil {
				m = &module{path: f[1], version: f[2], dir: f[3]}
				found[f[1]] = m
			}
			m.addTexts(f[0])
		}
	}
	modules := make([]*module, 0, len(found))
	for _, m := range found {
		if m.path == goModule {
			m.addTexts(m.dir) // its packages stand below src, its licence does not
		}
		var err error
		if m.license, err = m.identify(); err != nil {
			return nil, err
		}
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b *module) int { return strings.Compare(a.path, b.path) })
	return modules, nil
}

var statesLicense = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)(\.|$)`)

// addTexts adds the licence files of a package's folder, and of the folders above it within the module.
func (m *module) addTexts(dir string) {
	for {
		rel, err := filepath.Rel(m.dir, dir)
		if err != nil || strings.HasPrefix(rel, "..") {
			return
		}
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			name := filepath.Join(rel, e.Name())
			if e.Type().IsRegular() && statesLicense.MatchString(e.Name()) && !slices.Contains(m.texts, name) {
				m.texts = append(m.texts, name)
			}
		}
		if rel == "." {
			slices.Sort(m.texts)
			return
		}
		dir = filepath.Dir(dir)
	}
}

// phrases identify a licence by words that only its text has.
var phrases = []struct{ id, words string }{
	{"Apache-2.0", "Apache License Version 2.0"},
	{"Apache-2.0", "Licensed under the Apache License, Version 2.0"},
	{"BSD-3-Clause", "Neither the name of"},
	{"BSD-3-Clause", "endorse or promote products derived"},
	{"BSD-2-Clause", "Redistributions in binary form must reproduce"},
	{"MIT", "Permission is hereby granted, free of charge"},
}

// identify returns SPDX's expression for the licences of a module. A module without a known licence is an error: no
// release may carry it.
func (m *module) identify() (string, error) {
	var ids []string
	for _, name := range m.texts {
		if base := strings.ToLower(filepath.Base(name)); strings.HasPrefix(base, "patents") ||
			strings.HasPrefix(base, "notice") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.dir, name))
		if err != nil {
			return "", err
		}
		ids = append(ids, licensesIn(text)...)
	}
	slices.Sort(ids)
	if ids = slices.Compact(ids); len(ids) == 0 {
		return "", fmt.Errorf("%s %s states no licence that scripts/release knows: look at %s", m.path, m.version, m.dir)
	}
	return strings.Join(ids, " AND "), nil
}

func licensesIn(text []byte) (ids []string) {
	words := strings.Join(strings.Fields(string(text)), " ")
	for _, p := range phrases {
		bsd := p.id == "BSD-2-Clause" && slices.Contains(ids, "BSD-3-Clause") // the longer one contains the shorter
		if strings.Contains(words, p.words) && !bsd && !slices.Contains(ids, p.id) {
			ids = append(ids, p.id)
		}
	}
	return ids
}

func (m *module) name() string {
	switch m.path {
	case goModule:
		return "Go's standard library and runtime"
	case "goprof":
		return "goprof"
	}
	return m.path + " " + m.version
}

// writeNotices writes the text of all licences. A text that several modules share stands there once. Go's version is
// left out, since any recent Go builds goprof.
func writeNotices(w io.Writer, modules []*module) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "goprof is under the Apache License, version 2.0. Its program contains code of the modules below.\n"+
		"The text of each licence follows the list.\n\n")
	for _, m := range modules {
		fmt.Fprintf(&b, "  %-28s %s\n", m.license, m.name())
	}
	firstUse := map[string]string{}
	for _, m := range modules {
		for _, name := range m.texts {
			text, err := os.ReadFile(filepath.Join(m.dir, name))
			if err != nil {
				return err
			}
			title := m.name() + ": " + name
			fmt.Fprintf(&b, "\n%s\n%s\n\n", title, strings.Repeat("-", len(title)))
			if first := firstUse[string(text)]; first != "" {
				fmt.Fprintf(&b, "The same text as %s.\n", first)
				continue
			}
			firstUse[string(text)] = title
			b.Write(bytes.TrimRight(bytes.ReplaceAll(text, []byte("\r"), nil), " \n"))
			b.WriteByte('\n')
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}
