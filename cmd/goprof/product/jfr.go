//go:build linux

package product

import (
	"cmp"
	"io"
	"sync"

	"goprof/output/jfr"
	"goprof/output/outfile"
	"goprof/profile"
	"goprof/session"
)

// JFR is a JFR file that grows during the recording. Each chunk is complete on the disk when it is written, so if
// goprof is killed, only the chunk in memory is lost. The file gets its name with the first chunk after the first
// sample, so a recording without samples replaces nothing.
//
// The lock has two reasons. Signals also write the file. And the goroutine of a recording that was given up, because
// the process does not answer, may still run after the end.
type JFR struct {
	to      *outfile.File
	growing growing
	o       Options

	mu      sync.Mutex
	writer  *jfr.Writer
	about   session.Facts
	stop    func()
	samples int64 // passed to the writer
	threads jfr.ThreadCount
	done    bool
	failed  error
}

// growing is the destination of a JFR file: an outfile.Growing, or a spool.
type growing interface {
	io.WriteSeeker
	Truncate(size int64) error
	Publish() error
	EndSoon()
	Close() error
	Name() string
}

// newJFR makes a JFR file. Its bytes go to to, and its final place is file.
func newJFR(file *outfile.File, to growing, o Options) *JFR { return &JFR{to: file, growing: to, o: o} }

func (p *JFR) File() *outfile.File { return p.to }

func (p *JFR) Start(about session.Facts, stop func()) session.Sink {
	p.about, p.stop = about, stop
	p.writer = jfr.NewWriter(p.growing, jfr.Options{ChunkLength: p.o.Chunk})
	return p
}

// BeginPart begins another part of the recording.
func (p *JFR) BeginPart(at profile.Instant, m profile.Meta) {
	m.Version = p.o.Version
	p.Do(func(w *jfr.Writer) error {
		w.AddPart(m)
		return w.Tick(at)
	})
}

// Begin writes the facts that each chunk contains.
func (p *JFR) Begin(at profile.Instant, m profile.Meta) {
	m.Version = p.o.Version
	p.Do(func(w *jfr.Writer) error {
		w.SetMeta(m)
		w.SetJVM(jfr.JVM{Name: p.about.VMName, Version: cmp.Or(p.about.VMInfo, m.JVM), MainClass: m.MainClass,
			Start: p.about.Started, PID: m.PID})
		w.SetOS(p.about.OS)
		w.SetCPU(jfr.CPU{Type: p.about.Arch, Description: p.about.CPU, Sockets: p.about.Sockets, Cores: p.about.Cores,
			Threads: p.about.Threads})
		return w.Tick(at)
	})
}

// Sample writes a sample. It may complete a chunk of earlier samples.
func (p *JFR) Sample(s *profile.Sample) {
	p.Do(func(w *jfr.Writer) error {
		err := w.Sample(s)
		p.publish()
		p.samples += s.Looks()
		return err
	})
}

func (p *JFR) ThreadStart(at profile.Instant, t profile.Thread) {
	p.Do(func(w *jfr.Writer) error {
		p.threads.Started++
		return w.ThreadStart(at, t)
	})
}

func (p *JFR) ThreadEnd(at profile.Instant, t profile.Thread) {
	p.Do(func(w *jfr.Writer) error { return w.ThreadEnd(at, t) })
}

func (p *JFR) Tick(at profile.Instant, javaThreads int) {
	p.Do(func(w *jfr.Writer) error {
		p.threads.Active = int64(javaThreads)
		p.threads.Peak = max(p.threads.Peak, p.threads.Active)
		err := w.Threads(at, p.threads)
		p.publish()
		return err
	})
}

// Allocated implements session.AllocationSink.
func (p *JFR) Allocated(at profile.Instant, t profile.Thread, bytes uint64) {
	p.Do(func(w *jfr.Writer) error { return w.Allocated(at, t, bytes) })
}

// Do calls write, unless the file is finished or has failed. The first failure ends the recording.
func (p *JFR) Do(write func(*jfr.Writer) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.done || p.failed != nil {
		return
	}
	if err := write(p.writer); err != nil {
		p.fail(err)
	}
}

func (p *JFR) fail(err error) {
	if p.failed == nil {
		p.failed = err
		p.stop()
	}
}

// publish gives the file its name once it holds samples.
func (p *JFR) publish() {
	if p.samples == 0 || p.writer.Written() == 0 {
		return
	}
	if err := p.growing.Publish(); err != nil {
		p.fail(err)
	}
}

// SoFar ends the open chunk.
func (p *JFR) SoFar(r *Recorded) (string, error) {
	p.Do(func(w *jfr.Writer) error {
		err := w.Flush(r.At)
		p.publish()
		return err
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.growing.Name(), p.problem()
}

// Finish writes the account and the last chunk.
func (p *JFR) Finish(r *Recorded) (string, error) {
	p.growing.EndSoon()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.done && p.failed == nil {
		err := p.writer.Account(r.At, r.Summary)
		if err == nil {
			err = p.writer.Close(r.At)
		}
		if err != nil {
			p.fail(err)
		}
	}
	p.done = true // nothing may be written after the end
	p.publish()   // also the complete chunks before a failure
	if err := p.growing.Close(); err != nil && p.failed == nil {
		p.failed = err
	}
	return p.growing.Name(), p.problem()
}

// EndSoon is called when the recording ends. It takes no lock, because a write may hold the lock while it waits for a
// reader.
func (p *JFR) EndSoon() { p.growing.EndSoon() }

func (p *JFR) Discard() error {
	p.growing.EndSoon()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = true
	p.growing.Close()
	return p.problem()
}

// problem returns the first failure, with the name of the file.
func (p *JFR) problem() error {
	if _, named := p.failed.(*outfile.FileError); p.failed == nil || named {
		return p.failed
	}
	return &outfile.FileError{Name: p.growing.Name(), Err: p.failed}
}
