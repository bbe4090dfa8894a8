package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The types of image-spec 1.1 (specs-go/v1), as far as they are needed.
type (
	descriptor struct {
		MediaType   string            `json:"mediaType"`
		Digest      string            `json:"digest"`
		Size        int               `json:"size"`
		Platform    *platform         `json:"platform,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}
	platform struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	}
	manifest struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		Config        descriptor        `json:"config"`
		Layers        []descriptor      `json:"layers"`
		Annotations   map[string]string `json:"annotations,omitempty"`
	}
	index struct {
		SchemaVersion int          `json:"schemaVersion"`
		MediaType     string       `json:"mediaType"`
		Manifests     []descriptor `json:"manifests"`
	}
	image struct {
		platform
		Config  config    `json:"config"`
		RootFS  rootFS    `json:"rootfs"`
		History []history `json:"history"`
	}
	config struct {
		Entrypoint []string
		WorkingDir string
	}
	rootFS struct {
		Type    string   `json:"type"`
		DiffIDs []string `json:"diff_ids"`
	}
	history struct {
		CreatedBy string `json:"created_by"`
	}
)

const (
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	// program is where the binary stands in the image.
	program = "goprof"
)

type layout struct {
	dir       string
	manifests []descriptor
}

func newLayout(dir string) (*layout, error) {
	if _, err := os.Lstat(dir); err == nil {
		return nil, fmt.Errorf("%s is there already", dir)
	}
	return &layout{dir: dir}, os.MkdirAll(filepath.Join(dir, "blobs", "sha256"), 0o755)
}

// add adds the image of one CPU, "amd64=FILE", and returns its digest.
func (l *layout) add(binary, version string) (string, error) {
	cpu, file, ok := strings.Cut(binary, "=")
	if !ok {
		return "", fmt.Errorf("%q is no CPU=FILE", binary)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	files, packed, err := layer(content)
	if err != nil {
		return "", err
	}
	of := platform{cpu, "linux"}
	layer, err := l.blob(typeLayer, packed)
	if err != nil {
		return "", err
	}
	about, err := l.object(typeConfig, image{of, config{[]string{"/" + program}, "/"},
		rootFS{"layers", []string{digestOf(files)}}, []history{{"make image"}}})
	if err != nil {
		return "", err
	}
	var notes map[string]string
	if version != "" {
		notes = map[string]string{"org.opencontainers.image.version": version}
	}
	whole, err := l.object(typeManifest, manifest{2, typeManifest, about, []descriptor{layer}, notes})
	whole.Platform = &of
	l.manifests = append(l.manifests, whole)
	return whole.Digest, err
}

// layer is the only layer, as it is and packed. Nothing of it depends on when or by whom it is made.
func layer(content []byte) (files, packed []byte, err error) {
	var plain, zipped bytes.Buffer
	t := tar.NewWriter(&plain)
	for _, h := range []tar.Header{{Typeflag: tar.TypeDir, Name: "tmp/", Mode: 0o1777},
		{Typeflag: tar.TypeReg, Name: program, Mode: 0o755, Size: int64(len(content))}} {
		h.Format = tar.FormatUSTAR
		if err = t.WriteHeader(&h); err != nil {
			return nil, nil, err
		}
	}
	z := gzip.NewWriter(&zipped)
	if _, err = t.Write(content); err == nil {
		err = t.Close()
	}
	if err == nil {
		_, err = z.Write(plain.Bytes())
	}
	if err == nil {
		err = z.Close()
	}
	return plain.Bytes(), zipped.Bytes(), err
}

// finish writes what tells a reader where to begin. One index with an entry for each CPU is the image.
func (l *layout) finish() error {
	all, err := l.object(typeIndex, index{2, typeIndex, l.manifests})
	if err != nil {
		return err
	}
	all.Annotations = map[string]string{"org.opencontainers.image.ref.name": "latest"}
	top, err := json.Marshal(index{2, typeIndex, []descriptor{all}})
	if err == nil {
		err = os.WriteFile(filepath.Join(l.dir, "index.json"), top, 0o644)
	}
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(l.dir, "oci-layout"), []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644)
}

func (l *layout) object(mediaType string, what any) (descriptor, error) {
	text, err := json.Marshal(what)
	if err != nil {
		return descriptor{}, err
	}
	return l.blob(mediaType, text)
}

func (l *layout) blob(mediaType string, content []byte) (descriptor, error) {
	digest := digestOf(content)
	name := filepath.Join(l.dir, "blobs", "sha256", strings.TrimPrefix(digest, "sha256:"))
	return descriptor{MediaType: mediaType, Digest: digest, Size: len(content)}, os.WriteFile(name, content, 0o644)
}

func digestOf(content []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(content)) }
