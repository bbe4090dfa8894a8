//go:build linux

package main

import (
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/product"
	"goprof/output"
	"goprof/output/format"
	"goprof/output/outfile"
	"goprof/profile"
	"goprof/session"
)

// keptRecordings are the recordings of a triage that are kept beside its page: findings.cpu.jfr and findings.wall.jfr
// beside findings.html. Other commands can read them. They replace no file.
type keptRecordings struct {
	files map[session.Mode]product.Product

	mu    sync.Mutex
	names []string
	err   error // the first
}

var keptModes = []session.Mode{session.CPUMode, session.WallMode}

// keepBeside reserves the files. A page that goes into a stream has none.
func keepBeside(page *outfile.File) (*keptRecordings, error) {
	if page == nil || page.IsStream() {
		return nil, nil
	}
	k := &keptRecordings{files: make(map[session.Mode]product.Product)}
	base := strings.TrimSuffix(page.Name(), filepath.Ext(page.Name()))
	for _, mode := range keptModes {
		file, err := outfile.ReserveNumbered(base+"."+string(mode)+".jfr", nil)
		if err == nil {
			k.files[mode], err = product.New(format.JFR, file, product.Options{Version: version(), Chunk: maxChunk})
		}
		if err != nil {
			k.discard()
			return nil, err
		}
	}
	return k, nil
}

// begin implements examine.Options.Keep.
func (k *keptRecordings) begin(mode session.Mode, s *session.Session) (session.Sink,
	func(*profile.Profile, *profile.Summary)) {
	p := k.files[mode]
	return p.Start(s.Facts(), func() {}), func(stacks *profile.Profile, sum *profile.Summary) {
		if stacks == nil || sum.Samples == 0 {
			k.note("", p.Discard())
			return
		}
		sum.Meta.Version = version()
		k.note(p.Finish(&product.Recorded{Profile: stacks, Summary: sum, At: s.Now()}))
	}
}

func (k *keptRecordings) note(name string, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil && name != "" {
		k.names = append(k.names, name)
	}
	k.err = cmp.Or(k.err, err)
}

// written returns the names of the finished files.
func (k *keptRecordings) written() []string {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(slices.Values(k.names))
}

// tell names the finished files, and the commands that show them.
func (k *keptRecordings) tell(to io.Writer) {
	if names := k.written(); len(names) > 0 {
		fmt.Fprintf(to, "recordings: %s   next: goprof heat %s\n", output.Printable(strings.Join(names, ", ")),
			output.Printable(exit.CommandLine(names[:1])))
	}
}

// discard removes unfinished files.
func (k *keptRecordings) discard() {
	if k == nil {
		return
	}
	for _, p := range k.files {
		p.Discard()
	}
}
