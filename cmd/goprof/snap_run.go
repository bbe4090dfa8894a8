//go:build linux

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/terminal"
	"goprof/output"
	"goprof/output/outfile"
	"goprof/output/snap"
	"goprof/session"
)

// snapping is a running snap of one JVM.
type snapping struct {
	flags    *snapFlags
	target   *snapTarget
	ctx      context.Context
	line     *terminal.StatusLine
	out      *outfile.File
	zip      *snap.Writer
	failed   error  // an error of writing the file
	remedy   string // of the first missing part
	contents snap.Contents

	session *session.Session // for dumps and tables; nil: there is none
	err     error            // why there is no session
}

type snapPart struct {
	*snapping
	snap.Part
	cmd   *cobra.Command // its standard error holds the messages of the part's command
	notes bytes.Buffer
}

// none ends a part that has no content.
type none string

func (n none) Error() string { return string(n) }

// run takes the snap, and writes the file. The error names the missing parts.
func (s *snapping) run() (err error) {
	if s.out, err = s.flags.reserve(s.target.pid); err != nil {
		return exit.CannotWrite(err)
	}
	growing := s.out.Grow()
	defer growing.Close()
	buffered := bufio.NewWriterSize(growing, 64<<10)
	s.zip = snap.NewWriter(buffered)
	if !s.line.Shown() {
		fmt.Fprintf(s.line, "goprof: looking at process %d for some %v\n", s.target.pid,
			max(s.flags.duration, triageLeast)+5*time.Second)
	}
	began := time.Now()
	s.contents = snap.Contents{Goprof: version(), PID: s.target.pid, Start: began, Redacted: s.flags.by != nil}
	s.contents.Host, _ = os.Hostname()
	if s.target.jvm != nil {
		s.contents.MainClass = s.target.jvm.Main
	}
	s.takeAll()
	s.contents.Took = int64(time.Since(began))
	s.line.Wipe()
	s.redactContents()
	s.failed = cmp.Or(s.failed, s.zip.Close(&s.contents), buffered.Flush())
	if s.failed == nil { // after a failure the file gets no name
		s.failed = growing.Publish()
	}
	if s.failed = cmp.Or(s.failed, growing.Close()); s.failed != nil {
		return exit.CannotWrite(&outfile.FileError{Name: s.out.Name(), Err: s.failed})
	}
	return s.tell()
}

// takeAll takes all parts. Parts that a restart of the JVM would destroy first come first.
func (s *snapping) takeAll() {
	s.part("list", "the entry of goprof list", (*snapPart).list)
	s.part("doctor", "goprof doctor: what works here, and what does not", (*snapPart).doctor)
	s.session, s.err = session.Attach(s.target.pid)
	if s.err != nil {
		s.err = exit.CannotLook(s.target.pid, s.err)
	} else {
		defer s.session.Close()
		s.contents.MainClass = s.session.About().MainClass
	}
	neighbours := exit.Host().WatchNeighbours()
	s.part("dump", "goprof dump -n 3: all threads, and what moved", (*snapPart).dump)
	s.part("locks", "goprof locks: deadlocks, and which threads wait for whose lock", (*snapPart).locks)
	s.part("kernel", "pressure, memory, limits and control groups, as the kernel reports them", (*snapPart).kernel)
	s.part("flags", "flags of the JVM that do not have their defaults", (*snapPart).jvmFlags)
	s.part("gc", "the end of the log of garbage collection", (*snapPart).gcLog)
	s.part("hs_err", "files that crashed JVMs have left beside it", (*snapPart).crashFiles)
	s.triageAndRecord()
	// Parts that take no time are taken even after Ctrl-C.
	if s.flags.before != "" { // at the end, so that the batch of the alarm is there
		p := s.begin("before", "what the agent saw of it in the five minutes before")
		p.end(p.before())
	}
	beside := s.begin("neighbours", "processes that used CPU meanwhile")
	beside.end(beside.neighbours(neighbours))
	s.part("kernel-after", "the kernel's files once more", (*snapPart).kernel)
	s.part("memory", "goprof memory: where resident memory is", (*snapPart).memory)
	s.part("heap", "goprof heap: what fills the heap, by class", (*snapPart).heap)
}

// part takes one part. Its messages and its error go into the table of contents.
func (s *snapping) part(name, what string, take func(*snapPart) error) {
	p := s.begin(name, what)
	err := interruptedPart()
	if s.ctx.Err() == nil && s.failed == nil {
		s.line.Draw(fmt.Sprintf("%s: %s  (Ctrl-C keeps what there is)", name, what))
		err = take(p)
	}
	p.end(err)
}

func (s *snapping) begin(name, what string) *snapPart {
	p := &snapPart{snapping: s, Part: snap.Part{Name: name, What: what, Files: []string{}, Notes: []string{}}}
	p.cmd = &cobra.Command{Use: name}
	p.cmd.SetErr(&p.notes)
	p.cmd.SetContext(s.ctx)
	return p
}

// end enters the part into the table.
func (p *snapPart) end(err error) {
	var e *exit.Error
	var nothing none
	switch {
	case errors.As(err, &nothing):
		p.State, p.Why = snap.None, string(nothing)
	case err == nil:
		p.State = snap.Kept
	case errors.As(err, &e) && (e.Code == exit.Found || e.Code == exit.Deadlocked):
		p.State, p.Why, p.Code = snap.Kept, err.Error(), int(e.Code)
	default:
		p.State, p.Why, p.Code = snap.Missing, err.Error(), int(exit.General)
		if len(p.Files) > 0 {
			p.State = snap.Partial
		}
		if errors.As(err, &e) {
			p.Code = int(e.Code)
			p.remedy = cmp.Or(p.remedy, e.Remedy)
			if e.Remedy != "" {
				p.Notes = append(p.Notes, "try: "+e.Remedy)
			}
		}
	}
	for note := range strings.Lines(p.notes.String()) {
		p.Notes = append(p.Notes, strings.TrimPrefix(strings.TrimRight(note, "\n"), "goprof: "))
	}
	p.contents.Parts = append(p.contents.Parts, p.Part)
}

func (p *snapPart) add(name string, write func(io.Writer) error) {
	if p.failed == nil {
		p.failed = p.zip.Add(name, write)
		p.Files = append(p.Files, name)
	}
}

// attached returns the session for dumps and tables.
func (p *snapPart) attached() (*session.Session, error) { return p.session, p.err }

// redactContents removes names from the table.
func (s *snapping) redactContents() {
	c, by := &s.contents, s.flags.by
	if by == nil {
		return
	}
	c.MainClass, c.Host = by.Program(c.MainClass), by.Host(c.Host)
	for i := range c.Parts {
		p := &c.Parts[i]
		if p.State != snap.None { // None is goprof's own word
			p.Why = by.Text(p.Why)
		}
		for k := range p.Notes {
			p.Notes[k] = by.Text(p.Notes[k])
		}
	}
}

// tell reports what is in the file, and what is missing.
func (s *snapping) tell() error {
	lacking := s.contents.Lacking()
	for rest := lacking; len(rest) > 0; {
		names, why, n := []string{}, rest[0].Why, 0
		for n < len(rest) && rest[n].Why == why && rest[n].State == rest[0].State {
			names = append(names, rest[n].Name)
			n++
		}
		fmt.Fprintf(s.line, "goprof: %s: %s: %s\n", rest[0].State, strings.Join(names, ", "), output.Printable(why))
		rest = rest[n:]
	}
	kept, show := 0, []string{"unzip", "-p", s.out.Name(), snap.ReadmeFile}
	for _, p := range s.contents.Parts {
		if len(p.Files) == 0 {
			continue
		}
		if kept++; p.Name == "triage" {
			show = []string{"goprof", "triage", s.out.Name()}
		}
	}
	name, next := s.out.Name(), "   next: "+exit.CommandLine(show)
	if name == outfile.Stdout {
		name, next = "standard output", ""
	}
	fmt.Fprintf(s.line, "snap: %s (%d parts)%s\n", output.Printable(name), kept, output.Printable(next))
	if len(lacking) == 0 {
		return nil
	}
	return &exit.Error{Code: exit.Incomplete, What: fmt.Sprintf("%d of %d parts of the snap of process %d are missing or "+
		"incomplete", len(lacking), len(s.contents.Parts), s.target.pid), Remedy: s.remedy}
}
