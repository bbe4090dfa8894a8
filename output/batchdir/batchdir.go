// Package batchdir keeps batches as files in one folder. It keeps the folder within a given size and age by removing
// the oldest files first.
//
// It takes batches and never makes the caller wait. Each batch becomes a file, in pprof's format or JFR. A file is
// complete or does not exist. File names begin with the time, so they sort. Only files with such names are ever
// removed. If the disk is full, or batches come faster than they can be written, batches are dropped and counted.
package batchdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"goprof/output/folderlock"
	"goprof/output/jfr"
	"goprof/output/outfile"
	"goprof/output/pprof"
	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/resource"
)

// Options set where batches go, and how much room they have.
type Options struct {
	Dir string
	JFR bool // otherwise pprof
	// MaxBytes and MaxFiles bound the folder's contents. 0 is the default: 1 GB and 10,000 files.
	MaxBytes int64
	MaxFiles int
	// Tell gets lines for an operator, each problem once. It may be nil.
	Tell func(string)
}

const (
	usualBytes = 1 << 30
	usualFiles = 10_000
	// mostWaiting bounds the batches that wait for their file: when an agent ends, the last batches of all its JVMs come
	// at once.
	mostWaiting = 1024
)

// Stats counts batches by what happened to them. Offered = Written + Dropped + waiting.
type Stats struct {
	Offered, Written, Dropped, Failed int64 // Failed are those of Dropped that could not be written
	Removed                           int64 // files removed to make room
	Files                             int
	Bytes                             int64 // present bytes in the folder
}

// Dir writes batches into one folder, and removes old ones.
type Dir struct {
	o       Options
	folder  *os.Root // all files are opened in this folder, even if it is renamed
	unlock  func()
	waiting chan *batch.Batch
	done    chan struct{}

	mu    sync.Mutex
	stats Stats
	files []file // the oldest first
	told  map[string]bool
	stuck bool // already reported
	end   bool
	last  string // name of the last file
	same  int    // how many files have had a name with this beginning
}

type file struct {
	name string
	size int64
}

// New opens a folder, and makes it if necessary.
func New(o Options) (*Dir, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = usualBytes
	}
	if o.MaxFiles <= 0 {
		o.MaxFiles = usualFiles
	}
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return nil, err
	}
	folder, err := os.OpenRoot(o.Dir)
	if err != nil {
		return nil, err
	}
	// Two goprofs in one folder would count and remove each other's files.
	unlock, err := folderlock.Lock(folder, folderlock.LockName, o.Dir)
	if err != nil {
		folder.Close()
		return nil, err
	}
	s := &Dir{o: o, folder: folder, unlock: unlock, waiting: make(chan *batch.Batch, mostWaiting),
		done: make(chan struct{}), told: map[string]bool{}}
	if _, err = s.reserve(".goprof-may-write"); err == nil {
		err = s.list()
	}
	if err != nil {
		s.leave()
		return nil, err
	}
	s.trim()
	go s.work()
	return s, nil
}

// leave unlocks the folder and closes it.
func (s *Dir) leave() {
	s.unlock()
	s.folder.Close()
}

func (s *Dir) reserve(name string) (*outfile.File, error) {
	return outfile.ReserveIn(s.folder, name, filepath.Join(s.o.Dir, name))
}

// ours matches the names that a Dir gives: time, number, pid, name.
var ours = regexp.MustCompile(`^\d{8}T\d{6}Z-\d{4}-\d{1,10}-[A-Za-z0-9._-]{0,80}\.(pb\.gz|jfr)$`)

// list finds the files of earlier goprofs. It removes unfinished files of a goprof that was killed.
func (s *Dir) list() error {
	entries, err := fs.ReadDir(s.folder.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries { // sorted by name
		if name, ok := outfile.Leftover(e.Name()); ok && e.Type().IsRegular() && ours.MatchString(name) {
			s.folder.Remove(e.Name())
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && ours.MatchString(e.Name()) {
			s.files = append(s.files, file{e.Name(), info.Size()})
			s.stats.Bytes += info.Size()
		}
	}
	s.stats.Files = len(s.files)
	return nil
}

// Offer takes a batch without waiting.
func (s *Dir) Offer(b *batch.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Offered++
	if s.end {
		s.stats.Dropped++
		return
	}
	select {
	case s.waiting <- b:
	default:
		s.stats.Dropped++
	}
}

// Close writes the waiting batches.
func (s *Dir) Close() {
	s.mu.Lock()
	if !s.end {
		s.end = true
		close(s.waiting)
	}
	s.mu.Unlock()
	<-s.done
	s.leave()
}

func (s *Dir) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// work writes the waiting batches one by one.
func (s *Dir) work() {
	defer close(s.done)
	for b := range s.waiting {
		name := s.nameOf(b)
		size, err := s.write(name, b)
		s.mu.Lock()
		if err != nil {
			s.stats.Dropped++
			s.stats.Failed++
			s.tell(err)
		} else {
			s.stats.Written++
			s.stats.Bytes += size
			s.files = append(s.files, file{name, size})
			s.stats.Files = len(s.files)
			clear(s.told) // writing succeeds again
		}
		s.mu.Unlock()
		s.trim()
	}
}

// tell reports a failure once, until writing succeeds again.
func (s *Dir) tell(err error) {
	if at, ok := errors.AsType[*outfile.FileError](err); ok {
		err = at.Err // the name differs each time, so it is left out
	}
	text := err.Error()
	if s.o.Tell != nil && !s.told[text] {
		s.told[text] = true
		s.o.Tell(fmt.Sprintf("cannot write files in %s: %s; batches are dropped until that works", s.o.Dir, text))
	}
}

// tellStuck reports once that an old file cannot be removed.
func (s *Dir) tellStuck(err error) {
	if s.o.Tell != nil && !s.stuck {
		s.stuck = true
		s.o.Tell(fmt.Sprintf("cannot remove an old file: %v; it stays, beside what files may take", err))
	}
}

// nameOf makes a unique file name.
func (s *Dir) nameOf(b *batch.Batch) string {
	at := b.From.UTC().Format("20060102T150405Z")
	if s.last == at {
		s.same++
	} else {
		s.last, s.same = at, 0
	}
	end := "pb.gz"
	if s.o.JFR {
		end = "jfr"
	}
	if event := plain(b.Event.Name); event != "" {
		end = event[:min(len(event), mostEvent)] + "." + end
	}
	for ; ; s.same++ {
		name := fmt.Sprintf("%s-%04d-%s-%s.%s", at, s.same%10_000, pidOf(b), plain(b.Resource.Get(resource.ServiceName)), end)
		if _, err := s.folder.Lstat(name); err != nil || s.same > 10_000 {
			return name
		}
	}
}

func pidOf(b *batch.Batch) string { return strconv.Itoa(max(b.Meta.PID, 0)) }

// mostName bounds the part of a file's name that comes from a JVM. mostEvent bounds the part that names an event.
const mostName, mostEvent = 60, 19

// plain makes a name fit for a file name.
func plain(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), mostName)]
}

func (s *Dir) write(name string, b *batch.Batch) (size int64, err error) {
	f, err := s.reserve(name)
	if err != nil {
		return 0, err
	}
	count := &counter{}
	_, err = f.Write(func(w io.Writer) error {
		count.to = w
		if s.o.JFR {
			return writeJFR(count, b)
		}
		return writePprof(count, b)
	})
	return count.n, err
}

type counter struct {
	to io.Writer
	n  int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.to.Write(p)
	c.n += int64(n)
	return n, err
}

// trim removes the oldest files until the bounds hold.
func (s *Dir) trim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.files) > 0 && (s.stats.Bytes > s.o.MaxBytes || len(s.files) > s.o.MaxFiles) {
		oldest := s.files[0]
		err := s.folder.Remove(oldest.name)
		s.files = slices.Delete(s.files, 0, 1)
		s.stats.Bytes -= oldest.size
		if err == nil || errors.Is(err, os.ErrNotExist) {
			s.stats.Removed++
		} else { // later files can still be removed
			s.tellStuck(err)
		}
	}
	s.stats.Files = len(s.files)
}

// each hands the looks of a batch to take, as samples.
func each(b *batch.Batch, take func(*profile.Sample) error) error {
	var event *profile.EventKind
	if b.Event.Name != "" {
		event = &b.Event
	}
	for i := range b.Samples {
		s := &b.Samples[i]
		for _, p := range s.Points {
			one := profile.Sample{At: profile.Instant{Wall: p.At, Ticks: p.At}, Thread: s.Thread, Stack: s.Stack,
				State: s.State, NoState: s.NoState, Count: p.Looks, TimeOnly: p.Looks == 0, CPU: p.CPU,
				Wall: s.Wall, Span: p.Span, Bytes: p.Bytes,
				Event: event, About: s.About, Link: s.Link}
			if err := take(&one); err != nil {
				return err
			}
		}
	}
	return nil
}

func writePprof(w io.Writer, b *batch.Batch) error {
	o := pprof.OptionsOf(b)
	if b.Event.Name == "" {
		o.Weight = profile.CPUTime
		if b.Meta.Mode != "" && b.Meta.Mode != profile.ModeCPU {
			o.Weight = profile.WallTime
		}
		o.States = o.Weight == profile.WallTime
	}
	builder := pprof.NewBuilder(o)
	if err := each(b, builder.Add); err != nil {
		return err
	}
	return builder.Write(w, b.Meta)
}

func writeJFR(to io.Writer, b *batch.Batch) error {
	w := jfr.NewWriter(to, jfr.Options{})
	w.SetMeta(b.Meta)
	w.SetJVM(jfr.JVM{Name: b.Resource.Get(resource.RuntimeName), Version: b.Meta.JVM, MainClass: b.Meta.MainClass,
		PID: b.Meta.PID})
	if err := w.Tick(instant(b.From)); err != nil {
		return err
	}
	account := profile.Summary{Meta: b.Meta}
	err := each(b, func(s *profile.Sample) error {
		if s.TimeOnly { // it would count as an event
			account.Times.NotSampled += s.CPU
			return nil
		}
		account.Times.Sampled += s.CPU
		account.Attempted += s.Looks()
		if s.Stack.Truncated == profile.Whole {
			account.Whole += s.Looks()
		} else {
			account.Truncated += s.Looks()
		}
		return w.Sample(s)
	})
	if t := &account.Times; err == nil && t.NotSampled > 0 {
		t.Process = t.Sampled + t.NotSampled
		err = w.Account(instant(b.To), &account)
	}
	if err != nil {
		return err
	}
	return w.Close(instant(b.To))
}

// instant returns a time by the wall clock alone: batches have no other clock.
func instant(t time.Time) profile.Instant {
	return profile.Instant{Wall: t.UnixNano(), Ticks: t.UnixNano()}
}
