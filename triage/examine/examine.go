//go:build linux

// Package examine gathers the evidence for package triage: two recordings of the same seconds, dumps, and a reading of
// the vitals each second. It judges nothing.
//
// The recordings run side by side, each with its own session. A third session takes the dumps. If two of them want to
// stop the same thread within the same microseconds, the kernel gives it to one. The other counts a lost look (about
// one in a thousand), which the recording's account shows.
package examine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"goprof/memory"
	"goprof/process"
	"goprof/profile"
	"goprof/session"
	"goprof/triage"
	"goprof/triage/vitals"
)

// Options say how to look.
type Options struct {
	Duration time.Duration
	Tell     func(string) // receives progress messages; not nil
	// Keep, if not nil, is called before each of the recordings begins. It returns a Sink for the samples, and a
	// function that is called at the end with the profile and its summary.
	Keep func(session.Mode, *session.Session) (session.Sink, func(*profile.Profile, *profile.Summary))
}

const (
	cpuInterval  = 10 * time.Millisecond // of CPU time
	wallInterval = 50 * time.Millisecond // per thread
	readEvery    = time.Second
	// stoppedFor is the length of an examination of a stopped process, because nothing changes in it.
	stoppedFor = 2 * time.Second
	// dumpWait limits a dump. It is less than for goprof dump: a thread without a CPU now is in the next dump.
	dumpWait = 2 * time.Second
	// findVirtual limits how long each dump searches for virtual threads that wait for locks.
	findVirtual = time.Second
)

// Gather examines a JVM. It returns an error if the JVM cannot be examined, or has ended. Other facts that could not be
// read are missing in the evidence.
func Gather(ctx context.Context, pid int, opt Options) (*triage.Evidence, []string, error) {
	x := examination{opt: opt, evidence: &triage.Evidence{PID: pid}}
	defer x.close()
	if err := x.attach(pid); err != nil {
		return nil, nil, err
	}
	stopped, frozen := x.session.Stopped(), x.session.Frozen()
	if stopped || frozen != nil {
		x.opt.Duration = min(opt.Duration, stoppedFor)
	}
	x.evidence.Outdated = x.session.VM.Version().Outdated()
	recorded := x.record(ctx)
	err := x.look(ctx)
	recorded()
	if err == nil {
		err = x.session.Process.Alive()
	}
	if errors.Is(err, process.ErrSilent) && len(x.evidence.Readings) > 0 {
		x.note("its memory did not answer: what needs it is not known")
		err = nil
	}
	if err != nil {
		return nil, nil, err
	}
	x.evidence.Stopped = stopped && x.session.Stopped()
	x.evidence.Children = x.children.since()
	if f := x.session.Frozen(); f != nil && frozen != nil {
		x.evidence.Stopped, x.evidence.Frozen, x.evidence.Thaw = true, f.Text(), f.Thaw()
	}
	if n := len(x.evidence.Readings); n > 1 {
		x.evidence.Rates = vitals.Between(x.evidence.Readings[0], x.evidence.Readings[n-1])
		x.countHeap(ctx)
	}
	return x.evidence, x.notes, nil
}

type examination struct {
	opt      Options
	session  *session.Session // for dumps and vitals
	vitals   *vitals.Vitals
	memory   *memory.Reader
	others   [2]*session.Session // for the recordings
	locks    bool                // the JVM shows locks
	opened   connections         // at the last dump
	children *children           // nil: no thread has waited for a child
	evidence *triage.Evidence
	mu       sync.Mutex
	notes    []string
}

func (x *examination) attach(pid int) (err error) {
	if x.session, err = session.Attach(pid); err != nil {
		return err
	}
	x.locks = x.session.LocksKnown() == nil
	if x.vitals, err = vitals.Open(x.session); err != nil {
		return err
	}
	for i := range x.others {
		if x.others[i], err = session.Attach(pid); err != nil {
			return err
		}
	}
	return nil
}

func (x *examination) close() {
	if x.vitals != nil {
		x.vitals.Close()
	}
	for _, s := range []*session.Session{x.session, x.others[0], x.others[1]} {
		if s != nil {
			s.Close()
		}
	}
}

func (x *examination) note(text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notes = append(x.notes, text)
}

// record begins both recordings. The returned function waits for their end.
func (x *examination) record(ctx context.Context) (wait func()) {
	var all sync.WaitGroup
	for i, r := range []struct {
		mode session.Mode
		each time.Duration
		to   **profile.Profile
	}{{session.CPUMode, cpuInterval, &x.evidence.CPU}, {session.WallMode, wallInterval, &x.evidence.Wall}} {
		all.Go(func() {
			o := session.RecordOptions{Duration: x.opt.Duration, Mode: r.mode, Interval: r.each, Threads: true}
			end := func(*profile.Profile, *profile.Summary) {}
			if x.opt.Keep != nil {
				o.Sink, end = x.opt.Keep(r.mode, x.others[i])
			}
			p, sum, err := x.others[i].Record(ctx, o)
			end(p, &sum)
			if err != nil {
				x.note(fmt.Sprintf("the recording of %s time ended early: %v", r.mode, err))
			}
			*r.to = p
		})
	}
	return all.Wait
}

// look takes readings, and dumps at the beginning, in the middle and at the end.
func (x *examination) look(ctx context.Context) error {
	began := time.Now()
	dumps := [...]time.Duration{0, x.opt.Duration / 2, x.opt.Duration}
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	end := time.NewTimer(x.opt.Duration)
	defer end.Stop()
	taken := 0
	for memories := 0; ; {
		if err := x.read(); err != nil {
			return err
		}
		passed := time.Since(began)
		if memoryDue(memories, passed, x.opt.Duration) {
			memories++
			x.readMemory(passed >= x.opt.Duration)
		}
		if err := x.sumEarlier(passed); err != nil {
			return err
		}
		if taken < len(dumps) && passed >= dumps[taken] {
			taken++
			if err := x.dump(ctx); err != nil {
				return err
			}
			if err := x.dumpPools(); err != nil {
				return err
			}
		}
		if passed >= x.opt.Duration {
			return nil
		}
		x.opt.Tell(fmt.Sprintf("%s of %s  %d readings, %d of %d dumps", passed.Round(time.Second), x.opt.Duration,
			len(x.evidence.Readings), taken, len(dumps)))
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		case <-end.C:
		}
	}
}

func (x *examination) read() error {
	r, err := x.vitals.Read()
	if r != nil {
		x.evidence.Readings = append(x.evidence.Readings, r)
	}
	return err
}

func (x *examination) dump(ctx context.Context) error {
	at := time.Now()
	var waits profile.VirtualWaits
	threads, err := x.dumpAgain(ctx, &waits)
	locks := x.locks && err == nil
	if err != nil && !errors.Is(err, session.ErrNoLocks) {
		return err
	}
	remotes, err := x.remotes(threads)
	if err != nil {
		return err
	}
	x.evidence.Dumps = append(x.evidence.Dumps, triage.Dump{At: at, Threads: threads, Remotes: remotes,
		Locks: locks, Waits: waits})
	return nil
}

// dumpTries limits how often a dump is repeated because a recording had stopped one of its threads.
const dumpTries = 3

func (x *examination) dumpAgain(ctx context.Context, waits *profile.VirtualWaits) (threads []profile.ThreadDump,
	err error) {
	opt := session.DumpOptions{Wait: dumpWait, Locks: x.locks, Virtual: waits, Find: findVirtual, Cancel: ctx}
	for range dumpTries {
		threads, err = x.session.Dump(opt)
		if err != nil || !anyTraced(threads) {
			break
		}
	}
	return threads, err
}

func anyTraced(threads []profile.ThreadDump) bool {
	for i := range threads {
		if threads[i].Err == profile.AlreadyTraced.String() {
			return true
		}
	}
	return false
}
