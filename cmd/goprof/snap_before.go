//go:build linux

package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"goprof/output/convert"
	"goprof/output/format"
	"goprof/output/recording"
	"goprof/profile"
	"goprof/triage/vitals"
)

// A snap that an agent takes at an alarm also has what the agent saw before: the vitals that its second process has
// read, which come on standard input, and samples of the agent's own files.

const (
	// beforeFor is how much of the past is kept. mostBefore bounds its files: the shortest batch lasts a second.
	beforeFor  = 5 * time.Minute
	mostBefore = int(beforeFor / time.Second)
	// noFiles in place of a folder: the agent has no files that may be taken.
	noFiles = "-"
)

// pastVitals are rows of vitals.csv, the oldest first.
type pastVitals [][]string

func (p *pastVitals) add(r *vitals.Reading) {
	if *p = append(*p, vitalsRow(r)); len(*p) > int(beforeFor/watchEvery) {
		*p = (*p)[1:]
	}
}

func (p pastVitals) write(to io.Writer) error {
	w := csv.NewWriter(to)
	head := make([]string, len(vitalColumns))
	for i, c := range vitalColumns {
		head[i] = c.name
	}
	w.Write(head)
	return w.WriteAll(p)
}

// before adds the vitals and the samples of the time before the alarm to the snap. It reads the vitals from standard
// input, and the samples from the agent's files.
func (p *snapPart) before() error {
	p.add("before.csv", func(w io.Writer) error {
		_, err := io.Copy(w, io.LimitReader(os.Stdin, mostLog))
		return err
	})
	if p.flags.before == noFiles {
		fmt.Fprintln(&p.notes, "no samples: the agent keeps no files, or none for so long without names")
		return nil
	}
	src, err := openBefore(p.flags.before, p.target.pid, p.contents.Start.Add(-beforeFor))
	defer src.close()
	if len(src) == 0 {
		fmt.Fprintln(&p.notes, "no samples: no files of this JVM in the agent's folder")
		return err
	}
	p.add("before.collapsed", func(w io.Writer) error { // the agent's files have no names that may not be told
		_, failed := convert.Write(w, format.Collapsed, src, convert.Options{})
		err = errors.Join(err, failed)
		return nil
	})
	return err
}

// batchFile is the name of an agent's file: when it begins, and the process (package batchdir).
var batchFile = regexp.MustCompile(`^(\d{8}T\d{6}Z)-\d{4}-(\d+)-.*\.(pb\.gz|jfr)$`)

// joined are recordings of one JVM, one after the other.
type joined []*recording.File

// openBefore opens the files of a folder that have samples of a process, not of an event, and begin after a moment. The
// error is of those that cannot be read.
func openBefore(dir string, pid int, from time.Time) (all joined, err error) {
	entries, err := os.ReadDir(dir)
	for i := len(entries) - 1; i >= 0 && len(all) < mostBefore; i-- {
		m := batchFile.FindStringSubmatch(entries[i].Name())
		if m == nil || m[2] != strconv.Itoa(pid) || m[1] < from.UTC().Format("20060102T150405Z") {
			continue
		}
		f, failed := recording.Open(filepath.Join(dir, entries[i].Name()), recording.Options{})
		if failed != nil {
			err = failed // removed meanwhile, perhaps
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
