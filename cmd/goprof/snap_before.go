//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"goprof/cmd/goprof/internal/snapper"
	"goprof/output/convert"
	"goprof/output/format"
	"goprof/output/recording"
	"goprof/profile"
)

// A snap that an agent takes at an alarm also contains the time before: vitals that the agent's second process has
// read, which come on standard input, and samples from the agent's own files.

const (
	// mostBefore limits the files of that time. The shortest batch lasts a second.
	mostBefore = int(snapper.Past / time.Second)
)

// before adds the vitals and the samples of the time before the alarm to the snap. It reads the vitals from standard
// input, and the samples from the agent's files.
func (p *snapPart) before() error {
	p.add("before.csv", func(w io.Writer) error {
		_, err := io.Copy(w, io.LimitReader(os.Stdin, mostLog))
		return err
	})
	if p.flags.before == snapper.NoFiles {
		fmt.Fprintln(&p.notes, "no samples: the agent keeps no files, or none for so long without names")
		return nil
	}
	src, err := openBefore(p.flags.before, p.target.pid, p.contents.Start.Add(-snapper.Past))
	defer src.close()
	if len(src) == 0 {
		fmt.Fprintln(&p.notes, "no samples: no files of this JVM in the agent's folder")
		return err
	}
	p.add("before.collapsed", func(w io.Writer) error { // the agent's files contain no hidden names
		_, failed := convert.Write(w, format.Collapsed, src, convert.Options{})
		err = errors.Join(err, failed)
		return nil
	})
	return err
}

// batchFile matches the name of an agent's file, and captures its start time and its pid (package batchdir).
var batchFile = regexp.MustCompile(`^(\d{8}T\d{6}Z)-\d{4}-(\d+)-.*\.(pb\.gz|jfr)$`)

// joined are recordings of one JVM, in order of time.
type joined []*recording.File

// openBefore opens the files in a folder with samples of a process that begin after from. Files of events are left out.
// The error is about unreadable files.
func openBefore(dir string, pid int, from time.Time) (all joined, err error) {
	entries, err := os.ReadDir(dir)
	for i := len(entries) - 1; i >= 0 && len(all) < mostBefore; i-- {
		m := batchFile.FindStringSubmatch(entries[i].Name())
		if m == nil || m[2] != strconv.Itoa(pid) || m[1] < from.UTC().Format("20060102T150405Z") {
			continue
		}
		f, failed := recording.Open(filepath.Join(dir, entries[i].Name()), recording.Options{})
		if failed != nil {
			err = failed // the file may have been removed since
			continue
		}
		if info := f.Info(); info.Kind.Name != "" {
			f.Close()
			continue
		}
		all = append(all, f)
	}
	return all, err
}

func (j joined) Info() recording.Info { return j[0].Info() }

func (j joined) Each(visit func(*profile.Sample) error) error {
	for _, f := range j {
		if err := f.Each(visit); err != nil {
			return err
		}
	}
	return nil
}

func (j joined) close() {
	for _, f := range j {
		f.Close()
	}
}
