package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/output/recording"
	"goprof/profile"
)

// ioKeys are the keys of --by that sum up calls which read and write, and the kinds of targets that each of them shows.
var ioKeys = map[string][]string{
	"file": {profile.IOFile, profile.IOOther},
	"peer": {profile.IOPeer, profile.IOClient, profile.IOListen, profile.IOName},
}

// ioReport is what --by file and --by peer write.
type ioReport struct {
	By      string          `json:"by"`
	Rows    []profile.IOSum `json:"rows"`
	Omitted int             `json:"omitted"`
}

// files reports on files or peers. These are sums of the whole recording: no sample is counted.
func (f *reportFlags) files(cmd *cobra.Command, name string) error {
	if given := givenOf(cmd, sampleFlags); len(given) > 0 {
		return usageError(cmd, fmt.Sprintf("--%s is for samples, and --by %s has the sums of the whole recording", given[0],
			f.by), without(given...))
	}
	if err := exit.NotItself(name, f.to); err != nil {
		return err
	}
	if f.input.event == "" {
		f.input.all = true
	}
	in, err := f.input.open(cmd, name)
	if err != nil {
		return err
	}
	defer in.Close()
	sums := sumsOfIO(in.src.Info())
	if sums == nil {
		return &exit.Error{Code: exit.BadInput, What: "there are no sums of files and peers in " + output.CleanName(name),
			Why:    "only goprof record --event io counts them",
			Remedy: "goprof record PID -d 30s --event io -o io.jfr; of other recorders' files: --event jdk.FileRead --by path"}
	}
	r := ioReport{By: f.by, Rows: []profile.IOSum{}}
	for _, s := range sums.Sums {
		if slices.Contains(ioKeys[f.by], s.Kind) {
			r.Rows = append(r.Rows, s)
		}
	}
	if f.top > 0 && len(r.Rows) > f.top {
		r.Omitted, r.Rows = len(r.Rows)-f.top, r.Rows[:f.top]
	}
	return writeResult(cmd, f.to, func(w io.Writer) error {
		if f.asJSON {
			return output.WriteJSON(w, &r)
		}
		return r.text(w)
	})
}

// sumsOfIO finds the sums in the account of a recording, or of one of its parts; nil: there are none.
func sumsOfIO(about recording.Info) *profile.IO {
	if about.Summary != nil && about.Summary.IO != nil {
		return about.Summary.IO
	}
	for i := range about.Parts {
		if s := about.Parts[i].Summary; s != nil && s.IO != nil {
			return s.IO
		}
	}
	return nil
}

func (r *ioReport) text(to io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%10s %10s %10s %10s  %s\n", "took", "calls", "each", "bytes", r.By)
	for i := range r.Rows {
		s := &r.Rows[i]
		each, bytes, more := "", "", ""
		if s.Calls > 0 {
			each = output.Span(s.Took / time.Duration(s.Calls))
		}
		if s.Bytes > 0 {
			bytes = output.Grouped(s.Bytes)
		}
		if s.Failed > 0 {
			more += fmt.Sprintf("  %s failed", output.Grouped(s.Failed))
		}
		if s.Pending > 0 {
			more += fmt.Sprintf("  %s had not ended after %s", output.Grouped(s.Pending), output.Span(s.Pended))
		}
		fmt.Fprintf(&b, "%10s %10s %10s %10s  %s%s\n", output.Span(s.Took), output.Grouped(s.Calls), each, bytes,
			output.CleanName(profile.IOLabelOf(s.Op, s.Target)), more)
	}
	if r.Omitted > 0 {
		fmt.Fprintf(&b, "%45sand %d more: --top 0 shows all\n", "", r.Omitted)
	}
	_, err := io.WriteString(to, b.String())
	return err
}
