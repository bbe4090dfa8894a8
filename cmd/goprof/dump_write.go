package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/dumps"
	"goprof/output/outfile"
	"goprof/profile"
)

// The formats of dumps.
const (
	dumpAsText   = "text"
	dumpAsJSON   = "json"
	dumpAsJstack = "jstack"
)

var dumpFormats = []string{dumpAsText, dumpAsJSON, dumpAsJstack}

// dumpFile is the destination of dumps. Standard output gets one after the other. A file always holds all dumps so far.
type dumpFile struct {
	*outfile.File
	soFar bytes.Buffer
}

func reserveDump(name string) (*dumpFile, error) {
	file, err := outfile.Reserve(name)
	if err != nil {
		return nil, exit.CannotWrite(err)
	}
	return &dumpFile{File: file}, nil
}

// write adds text. A named pipe gets all text with the last dump.
func (f *dumpFile) write(last bool, write func(io.Writer) error) (err error) {
	if f.Name() == outfile.Stdout {
		_, err = f.Write(write)
	} else if err = write(&f.soFar); err == nil && (last || !f.IsStream()) {
		_, err = f.Write(func(w io.Writer) error {
			_, err := w.Write(f.soFar.Bytes())
			return err
		})
	}
	return exit.CannotWrite(err)
}

func writeDump(w io.Writer, dump *profile.Dump, format string, shape dumps.Shape) error {
	switch format {
	case dumpAsJSON:
		return dumps.JSON(w, dump, shape)
	case dumpAsJstack:
		return dumps.Jstack(w, dump)
	}
	return dumps.Text(w, dump, shape)
}

// tellCensus reports how many virtual threads are shown, and why others are not.
func tellCensus(to io.Writer, c *profile.VirtualCensus) {
	fmt.Fprintf(to, "goprof: %d virtual threads, %d of them shown that no carrier ran\n", c.Seen, c.Shown)
	for _, why := range slices.Sorted(maps.Keys(c.Unread)) {
		fmt.Fprintf(to, "goprof: %d could not be read, or not whole: %s\n", c.Unread[why], output.Printable(why))
	}
	if c.Untracked {
		fmt.Fprintln(to, "goprof: the JVM keeps only those that an executor has started (jdk.trackAllThreads=false)")
	}
}
