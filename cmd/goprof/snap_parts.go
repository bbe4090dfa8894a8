//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/cmd/goprof/internal/hosttext"
	"goprof/diagnose"
	"goprof/output"
	"goprof/output/dumps"
	"goprof/output/redaction"
	"goprof/profile"
	"goprof/profile/contention"
	"goprof/session"
	"goprof/triage/hserr"
	"goprof/vmstructs"
)

// The parts of a snap use the code of the commands with the same names.

const (
	snapDumps = 3
	snapDepth = 2048
	snapTop   = 30
	// mostLog limits the end of a log that is kept, mostCrashLog the beginning of a crash file.
	mostLog      = 2 << 20
	mostCrashLog = 4 << 20
	// mostNeighbours limits how many processes are listed.
	mostNeighbours = 50
)

func (p *snapPart) list() error {
	if p.target.jvm == nil {
		return errors.New("goprof list does not show it")
	}
	j := *p.target.jvm
	if by := p.flags.by; by != nil {
		j.Main, j.User, j.Vendor, j.Version = by.Program(j.Main), by.Text(j.User), by.Version(j.Vendor), by.Version(j.Version)
		j.Container = by.Text(j.Container)
		if j.Problem != nil {
			j.Problem = new(p.withoutNames(*j.Problem))
		}
	}
	p.add("list.txt", func(w io.Writer) error { return hosttext.List(w, []diagnose.JVM{j}, false, 0) })
	p.add("list.json", func(w io.Writer) error { return hosttext.ListJSON(w, []diagnose.JVM{j}, false) })
	return nil
}

func (p *snapPart) withoutNames(c diagnose.Cause) diagnose.Cause {
	c.Why, c.Remedy = p.flags.by.Text(c.Why), p.flags.by.Text(c.Remedy)
	return c
}

func (p *snapPart) doctor() error {
	r := p.target.doctor
	if by := p.flags.by; by != nil {
		r.Checks = slices.Clone(r.Checks)
		for i := range r.Checks {
			c := &r.Checks[i]
			c.Text, c.Remedy = by.Text(c.Text), by.Text(c.Remedy)
		}
		if r.Cause != nil {
			r.Cause = new(p.withoutNames(*r.Cause))
		}
	}
	p.add("doctor.txt", func(w io.Writer) error { return hosttext.Doctor(w, &r) })
	p.add("doctor.json", func(w io.Writer) error { return hosttext.DoctorJSON(w, p.target.pid, &r) })
	return nil
}

// stoppable returns the session, if threads may be stopped.
func (p *snapPart) stoppable() (*session.Session, error) {
	s, err := p.attached()
	if err == nil {
		if err = exit.Host().Traced(p.target.pid); err != nil {
			err = exit.CannotLook(p.target.pid, err)
		}
	}
	return s, err
}

func (p *snapPart) dump() error {
	s, err := p.stoppable()
	if err != nil {
		return err
	}
	d := &dumper{pid: p.target.pid, count: snapDumps, dumpFlags: dumpFlags{redactFlags: redactFlags{by: p.flags.by}},
		live: session.DumpOptions{Locks: true, Depth: snapDepth}}
	d.every = min(time.Second, p.flags.duration/5)
	if err := s.LocksKnown(); err != nil {
		fmt.Fprintf(&p.notes, "locks are not shown: %v\n", err)
		d.live.Locks = false
	}
	dumps, incomplete, err := d.takeAll(p.ctx, p.cmd, s, func([]*profile.Dump) error { return nil })
	if err != nil {
		return err
	}
	exit.TellNotes(&p.notes, exit.Host().Notes(s))
	for _, f := range [][2]string{{"dump.txt", dumpAsText}, {"dump.json", dumpAsJSON}, {"dump.jstack.txt", dumpAsJstack}} {
		of := *d
		of.format, of.shape.Native = f[1], f[1] == dumpAsJSON
		p.add(f[0], func(w io.Writer) error { return of.writeAll(w, dumps) })
	}
	if incomplete == nil && len(dumps) < snapDumps {
		incomplete = fmt.Errorf("%d of %d dumps", len(dumps), snapDumps)
	}
	return incomplete
}

func (p *snapPart) locks() error {
	s, err := p.stoppable()
	if err != nil {
		return err
	}
	if err := s.LocksKnown(); err != nil {
		return err
	}
	seen, err := seeLocks(s, session.DumpOptions{Locks: true, Gentle: true, Depth: snapDepth, Cancel: p.ctx})
	if err != nil {
		return err
	}
	tellVirtualWaits(&p.notes, &seen.waits)
	if p.flags.by != nil {
		p.flags.by.Dump(&profile.Dump{Threads: seen.threads})
	}
	graph := contention.New(seen.threads)
	p.add("locks.txt", func(w io.Writer) error { return dumps.LocksText(w, seen.threads, graph) })
	p.add("locks.json", func(w io.Writer) error { return dumps.LocksJSON(w, seen.threads, graph) })
	of := fmt.Sprintf("process %d", p.target.pid)
	if err := seen.verdict(of, fmt.Sprintf("goprof locks --pid %d", p.target.pid), graph); err != nil {
		return err
	}
	return notStopped("locks", p.target.pid, seen.threads, session.DumpWait)
}

func (p *snapPart) heap() error {
	s, err := p.attached()
	if err != nil {
		return err
	}
	f := heapFlags{redactFlags: redactFlags{by: p.flags.by}}
	h, err := f.reader(p.ctx, s)()
	if err != nil {
		return heapError(p.target.pid, err)
	}
	p.add("heap.txt", func(w io.Writer) error { return output.HeapText(w, h, output.HeapShape{Top: snapTop}) })
	p.add("heap.json", func(w io.Writer) error { return output.HeapJSON(w, h, nil, output.HeapShape{}) })
	return nil
}

func (p *snapPart) memory() error {
	s, err := p.attached()
	if err != nil {
		return err
	}
	f := memoryFlags{redactFlags: redactFlags{by: p.flags.by}, readings: readings{count: 1}}
	readings, err := f.read(p.ctx, &p.notes, s)
	if err != nil {
		return err
	}
	p.add("memory.txt", func(w io.Writer) error { return output.MemoryText(w, readings[0], nil, snapTop) })
	p.add("memory.json", func(w io.Writer) error { return output.MemoryJSON(w, readings[0], nil) })
	return nil
}

// jvmFlags lists the flags. Their values may be paths and commands, so --redact removes these.
func (p *snapPart) jvmFlags() error {
	s, err := p.attached()
	if err != nil {
		return err
	}
	set, err := session.Ask(s, func() (set []vmstructs.SetFlag, err error) {
		set, known := s.VM.SetFlags()
		if !known {
			err = errors.New("this JVM does not say who set its flags")
		}
		return set, err
	})
	if err != nil {
		return err
	}
	p.add("flags.txt", func(w io.Writer) error {
		var b strings.Builder
		for _, f := range set {
			value := f.String()
			if by := p.flags.by; by != nil && f.Kind == vmstructs.StringFlag {
				_, value, _ = strings.Cut(by.Line(f.Name+"="+value), "=") // redacted as a line of a crash file: as a whole
			}
			fmt.Fprintf(&b, "%s=%s  (%s)\n", output.Printable(f.Name), output.Printable(value), f.Origin)
		}
		_, err := io.WriteString(w, b.String())
		return err
	})
	return nil
}

// log adds text that other programs wrote. Names that must be hidden are removed.
func (p *snapPart) log(name string, text []byte) {
	p.add(name, func(w io.Writer) error { return p.writeLog(w, text) })
}

func (p *snapPart) writeLog(w io.Writer, text []byte) error {
	if p.flags.by == nil {
		_, err := w.Write(text)
		return err
	}
	if err := redaction.Rewrite(w, bytes.NewReader(text), redaction.Log, p.flags.by); err != nil {
		_, err = fmt.Fprintf(w, "(left out: %v)\n", err)
		return err
	}
	return nil
}

// kernel keeps the kernel's files one after the other, under headings like tail's. Their words are the kernel's own,
// except in a few files.
func (p *snapPart) kernel() error {
	files := exit.Host().KernelFiles(p.target.pid)
	unread := 0
	p.add(p.Name+".txt", func(w io.Writer) error {
		for i, f := range files {
			name := f.Name
			if by := p.flags.by; by != nil && !strings.HasPrefix(name, "/proc/") {
				name = filepath.Join(by.Path(filepath.Dir(name)), filepath.Base(name))
			}
			if i > 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintf(w, "==> %s <==\n", output.Printable(name))
			write := p.writeLog
			if !f.Names {
				write = func(w io.Writer, text []byte) error { _, err := w.Write(text); return err }
			}
			if f.Err != nil {
				unread++
				fmt.Fprintf(w, "(cannot be read: %v)\n", errors.Unwrap(f.Err))
			} else if err := write(w, f.Text); err != nil {
				return err
			}
		}
		return nil
	})
	if unread > 0 {
		fmt.Fprintf(&p.notes, "%d of %d files cannot be read\n", unread, len(files))
	}
	return nil
}

func (p *snapPart) neighbours(since func() ([]diagnose.Neighbour, time.Duration)) error {
	all, over := since()
	p.add("neighbours.txt", func(w io.Writer) error {
		fmt.Fprintf(w, "%d processes used CPU within %v.\n\n%8s %8s %10s  %s\n", len(all), over.Round(time.Second), "PID",
			"CPU", "TIME", "NAME")
		for _, n := range all[:min(len(all), mostNeighbours)] {
			if p.flags.by != nil {
				n.Name = p.flags.by.Text(n.Name)
			}
			_, err := fmt.Fprintf(w, "%8d %7.0f%% %10v  %s\n", n.PID, 100*n.Share, n.CPU, output.Printable(n.Name))
			if err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

func (p *snapPart) gcLog() error {
	s, err := p.attached()
	if err != nil {
		return err
	}
	args, err := session.Ask(s, func() ([]string, error) { return s.VM.JVMArgs(), nil })
	if err != nil {
		return err
	}
	logs, err := exit.Host().GCLogs(p.target.pid, args, mostLog)
	switch {
	case err != nil && len(logs) == 0:
		return err
	case len(logs) == 0:
		return none("the JVM's options name no file")
	}
	for i, log := range logs {
		name := "gc.log"
		if i > 0 {
			name = fmt.Sprintf("gc.%d.log", i+1)
		}
		p.log(name, log.Text)
		if int64(len(log.Text)) < log.Size {
			fmt.Fprintf(&p.notes, "%s: the last %s of %s\n", name, output.Size(uint64(len(log.Text))),
				output.Size(uint64(log.Size)))
		}
	}
	return err
}

func (p *snapPart) crashFiles() error {
	logs, err := exit.Host().CrashFiles(p.target.pid, mostCrashLog)
	if err != nil {
		return err
	}
	for _, log := range logs {
		if !hserr.Is(log.Text) {
			continue
		}
		name := fmt.Sprintf("hs_err.%d.log", len(p.Files)+1)
		p.log(name, log.Text)
		fmt.Fprintf(&p.notes, "%s: written at %s\n", name, log.Time.UTC().Format(time.RFC3339))
	}
	if len(p.Files) == 0 {
		return none("there is none in its working directory")
	}
	return nil
}

// interruptedPart is the error of a part that was not completed.
func interruptedPart() error { return &exit.Error{Code: exit.General, What: "interrupted"} }
