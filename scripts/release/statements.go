package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

// writeSBOM lists the modules that a binary says it was built of, in CycloneDX 1.5
// (https://cyclonedx.org/docs/1.5/json/). It has no serial number and no time, so that the same binary has the same
// list.
func writeSBOM(w io.Writer, binary string, modules []*module) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	sum, err := sha256Of(binary)
	if err != nil {
		return err
	}
	license := map[string]string{}
	for _, m := range modules {
		license[m.path] = m.license
	}
	type object = map[string]any
	component := func(kind, path, version string) object {
		c := object{"type": kind, "bom-ref": purl(path, version), "name": path, "version": version,
			"purl": purl(path, version)}
		if id := license[path]; id != "" {
			c["licenses"] = []object{{"expression": id}}
		}
		return c
	}
	program := component("application", info.Main.Path, info.Main.Version)
	program["hashes"] = []object{{"alg": "SHA-256", "content": sum}}
	parts := []object{component("library", goModule, strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if license[m.Path] == "" {
			return fmt.Errorf("%s contains %s, whose licence is not known here", binary, m.Path)
		}
		parts = append(parts, component("library", m.Path, m.Version))
	}
	return writeJSON(w, object{"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata": object{"component": program}, "components": parts})
}

func purl(path, version string) string { return "pkg:golang/" + path + "@" + version }

// writeProvenance says of which commit, by which Go and with which settings binaries were built: an in-toto statement
// with SLSA's predicate (https://slsa.dev/spec/v1.0/provenance). It is read from the binaries themselves.
func writeProvenance(w io.Writer, binaries []string) error {
	type object = map[string]any
	var subjects []object
	var first *debug.BuildInfo
	for _, name := range binaries {
		info, err := buildinfo.ReadFile(name)
		if err != nil {
			return err
		}
		if first == nil {
			first = info
		}
		if setting(info, "vcs.revision") != setting(first, "vcs.revision") || info.GoVersion != first.GoVersion {
			return fmt.Errorf("%s and %s are not of one build", binaries[0], name)
		}
		sum, err := sha256Of(name)
		if err != nil {
			return err
		}
		subjects = append(subjects, object{"name": filepath.Base(name), "digest": object{"sha256": sum}})
	}
	flags := object{}
	for _, key := range []string{"-trimpath", "-ldflags", "CGO_ENABLED", "GOAMD64", "GOARM64"} {
		if v := setting(first, key); v != "" {
			flags[key] = v
		}
	}
	return writeJSON(w, object{"_type": "https://in-toto.io/Statement/v1", "subject": subjects,
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": object{
			"buildDefinition": object{
				"buildType":          "scripts/dist.sh",
				"externalParameters": object{"version": first.Main.Version},
				"internalParameters": flags,
				"resolvedDependencies": []object{
					{"name": "source", "digest": object{"gitCommit": setting(first, "vcs.revision")}},
					{"name": "go", "annotations": object{"version": first.GoVersion}},
				},
			},
			"runDetails": object{"builder": object{"id": "scripts/dist.sh"}},
		}})
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

func sha256Of(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
