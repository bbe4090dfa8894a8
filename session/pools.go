//go:build linux

package session

import (
	"errors"
	"strings"
	"time"

	"goprof/process/maybe"
	"goprof/process/procfs"
	"goprof/profile"
	"goprof/vmstructs"
)

const (
	// poolTries bounds how often pools are read while a collector is at work. poolPause is the time between two readings.
	poolTries = 25
	poolPause = 40 * time.Millisecond
)

// errPoolsMove: a collector was at work during each reading of the pools.
var errPoolsMove = errors.New("a collector was at work each time that they were read")

// Pools reads the state of the JVM's pools from their objects. No thread is stopped for that, so the numbers of one
// pool may be some microseconds apart. An error means that the process is gone or does not answer. Any other reason why
// objects could not be read is in the result.
func (s *Session) Pools() (*profile.Pools, error) {
	p, err := Ask(s, func() (*profile.Pools, error) {
		s.awaitCollection()
		p := &profile.Pools{}
		if err := s.readPools(p); err != nil {
			p = &profile.Pools{Err: err.Error()}
		}
		return p, nil
	})
	if err != nil {
		return nil, err
	}
	return p, s.Process.Alive()
}

// readPools repeats the reading of the pools until no collector has moved objects during it, but no more than poolTries
// times.
func (s *Session) readPools(to *profile.Pools) error {
	reader, err := s.VM.NewPools()
	if err != nil {
		return err
	}
	proc := procfs.OpenDir(s.Process.PID())
	defer proc.Close()
	for range poolTries {
		var threads []vmstructs.Thread
		if threads, err = s.VM.Threads(); err != nil {
			continue
		}
		var all []*vmstructs.Executor
		var lent []*vmstructs.Connections
		rested := s.whileResting(reader, proc, func() { all, lent, err = reader.Read(threads) })
		switch {
		case err == nil && rested:
			s.tellPools(to, all, lent)
			return nil
		case err != nil && !errors.Is(err, vmstructs.ErrMoved):
			return err
		}
		err = errPoolsMove
		time.Sleep(poolPause)
	}
	return err
}

// tellPools translates a reading into the types of package profile.
func (s *Session) tellPools(to *profile.Pools, all []*vmstructs.Executor, lent []*vmstructs.Connections) {
	tids := map[uint64]int{}
	for tid, th := range s.dir.threads {
		if th.java.Addr != 0 {
			tids[th.java.Addr] = tid
		}
	}
	known := func(addrs []uint64) (list []int) {
		for _, addr := range addrs {
			if tid, ok := tids[addr]; ok {
				list = append(list, tid)
			}
		}
		return list
	}
	now := s.Now().Ticks
	for _, e := range all {
		out := profile.Executor{Kind: profile.ExecutorKind(e.Kind), Class: dotted(e.Class), Core: e.Core, Most: e.Most,
			Queued: e.Queued, Room: e.Room, Scheduled: e.Scheduled, Next: dotted(e.Next),
			Running: e.Running, Done: e.Done}
		if due, ok := e.Due.Get(); ok && now > due {
			out.Late = time.Duration(now - due)
		}
		out.Threads = known(e.Threads)
		to.Executors = append(to.Executors, out)
	}
	for _, c := range lent {
		at, ok := c.Borrowed.Get()
		to.Connections = append(to.Connections, profile.Connections{Name: c.Name, Most: c.Most, Waiting: c.Waiting,
			All: c.All, Lent: c.Lent, Holders: known(c.Holders), Longest: maybe.If(time.Duration(now-at), ok && now >= at)})
	}
}

// dotted returns a class's name in Java's spelling. For a hidden class, it returns only the part that is the same in
// every run.
func dotted(class string) string {
	name := strings.ReplaceAll(class, "/", ".")
	if at := strings.Index(name, "$$Lambda"); at >= 0 {
		name = name[:at+len("$$Lambda")]
	}
	return name
}
