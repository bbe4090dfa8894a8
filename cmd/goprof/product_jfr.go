//go:build linux

package main

import (
	"cmp"
	"io"
	"sync"

	"goprof/output/jfr"
	"goprof/output/outfile"
	"goprof/profile"
	"goprof/session"
)

// jfrProduct is a JFR file that grows while it is recorded. Each chunk is whole on the disk as soon as it is written:
// if goprof is killed, only the open chunk is lost. The file gets its name with the first chunk after the first sample,
// so a recording without samples replaces nothing.
//
// The lock is for signals. It is also for a recording that was given up because the process does not answer: its
// goroutine may come back when all is over.
type jfrProduct struct {
	to      *outfile.File
	growing growing
	o       productOptions

	mu      sync.Mutex
	writer  *jfr.Writer
	about   session.Facts
	stop    func()
	samples int64 // that were given to the writer
	threads jfr.ThreadCount
	done    bool
	failed  error
}

// growing is what a JFR file is written to: an outfile.Growing, or a spool.
type growing interface {
	io.WriteSeeker
	Truncate(size int64) error
	Publish() error
	EndSoon()
	Close() error
	Name() string
}

func (p *jfrProduct) file() *outfile.File { return p.to }

func (p *jfrProduct) begin(about session.Facts, stop func()) session.Sink {
	p.about, p.stop = about, stop
	p.writer = jfr.NewWriter(p.growing, jfr.Options{ChunkLength: p.o.chunk})
	return p
}

// BeginPart begins a further part of the recording.
func (p *jfrProduct) BeginPart(at profile.Instant, m profile.Meta) {
	m.Version = version()
	p.do(func(w *jfr.Writer) error {
		w.AddPart(m)
		return w.Tick(at)
	})
}

// Begin writes what stands in each chunk.
func (p *jfrProduct) Begin(at profile.Instant, m profile.Meta) {
	m.Version = version()
	p.do(func(w *jfr.Writer) error {
		w.SetMeta(m)
		w.SetJVM(jfr.JVM{Name: p.about.VMName, Version: cmp.Or(p.about.VMInfo, m.JVM), MainClass: m.MainClass,
			Start: p.about.Started, PID: m.PID})
		w.SetOS(p.about.OS)
		w.SetCPU(jfr.CPU{Type: p.about.Arch, Description: p.about.CPU, Sockets: p.about.Sockets, Cores: p.about.Cores,
			Threads: p.about.Threads})
		return w.Tick(at)
	})
}

// Sample writes a sample. The samples before it may become a chunk by that.
func (p *jfrProduct) Sample(s *profile.Sample) {
	p.do(func(w *jfr.Writer) error {
		err := w.Sample(s)
		p.publish()
		p.samples += s.Looks()
		return err
	})
}

func (p *jfrProduct) ThreadStart(at profile.Instant, t profile.Thread) {
	p.do(func(w *jfr.Writer) error {
		p.threads.Started++
		return w.ThreadStart(at, t)
	})
}

func (p *jfrProduct) ThreadEnd(at profile.Instant, t profile.Thread) {
	p.do(func(w *jfr.Writer) error { return w.ThreadEnd(at, t) })
}

func (p *jfrProduct) Tick(at profile.Instant, javaThreads int) {
	p.do(func(w *jfr.Writer) error {
		p.threads.Active = int64(javaThreads)
		p.threads.Peak = max(p.threads.Peak, p.threads.Active)
		err := w.Threads(at, p.threads)
		p.publish()
		return err
	})
}

// Allocated is session.AllocationSink.
func (p *jfrProduct) Allocated(at profile.Instant, t profile.Thread, bytes uint64) {
	p.do(func(w *jfr.Writer) error { return w.Allocated(at, t, bytes) })
}

// do calls write, unless the file is finished or has failed. The first failure ends the recording.
func (p *jfrProduct) do(write func(*jfr.Writer) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done || p.failed != nil {
		return
	}
	if err := write(p.writer); err != nil {
		p.fail(err)
	}
}

func (p *jfrProduct) fail(err error) {
	if p.failed == nil {
		p.failed = err
		p.stop()
	}
}

// publish gives the file its name when it holds samples.
func (p *jfrProduct) publish() {
	if p.samples == 0 || p.writer.Written() == 0 {
		return
	}
	if err := p.growing.Publish(); err != nil {
		p.fail(err)
	}
}

// soFar ends the open chunk.
func (p *jfrProduct) soFar(r *soFar) (string, error) {
	p.do(func(w *jfr.Writer) error {
		err := w.Flush(r.at)
		p.publish()
		return err
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.growing.Name(), p.problem()
}

// finish writes the account and the last chunk.
func (p *jfrProduct) finish(r *soFar) (string, error) {
	p.growing.EndSoon()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.done && p.failed == nil {
		err := p.writer.Account(r.at, r.summary)
		if err == nil {
			err = p.writer.Close(r.at)
		}
		if err != nil {
			p.fail(err)
		}
	}
	p.done = true // nothing goes between the end and this
	p.publish()   // what was whole before a failure, too
	if err := p.growing.Close(); err != nil && p.failed == nil {
		p.failed = err
	}
	return p.growing.Name(), p.problem()
}

// endSoon is called when the recording ends. It takes no lock: a write may hold the lock while it waits for a reader.
func (p *jfrProduct) endSoon() { p.growing.EndSoon() }

func (p *jfrProduct) discard() error {
	p.growing.EndSoon()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	p.growing.Close()
	return p.problem()
}

// problem is what went wrong, with the name of the file.
func (p *jfrProduct) problem() error {
	if _, named := p.failed.(*outfile.FileError); p.failed == nil || named {
		return p.failed
	}
	return &outfile.FileError{Name: p.growing.Name(), Err: p.failed}
}
