//go:build linux

package session

import (
	"errors"
	"time"

	"goprof/process"
	"goprof/process/procfs"
	"goprof/profile"
	"goprof/unwind"
)

// ErrNoVirtual: the JVM has no virtual threads, or does not show where they are.
var ErrNoVirtual = errors.New("this JVM has no virtual threads that could be listed (they came with JDK 21)")

// HasVirtual reports whether the JVM has virtual threads that DumpVirtual could list.
func (s *Session) HasVirtual() bool { return s.VM.HasVirtual() }

// zgcPatience is how long a dump tries to read all virtual threads while ZGC moves no objects.
const zgcPatience = time.Second

// DumpVirtual looks at every virtual thread without a carrier. It stops no thread: the frames of such a virtual thread
// lie in the heap until a carrier runs it. Dump has the virtual threads that a carrier runs.
//
// After virtualLimit it stops reading, and returns what it has read.
func (s *Session) DumpVirtual(opt DumpOptions) (all []profile.ThreadDump, census profile.VirtualCensus, err error) {
	census = profile.VirtualCensus{Unread: map[string]int{}}
	if !s.guarded(func() { err = s.dumpVirtual(opt, &all, &census) }) {
		err = process.ErrSilent
	}
	profile.OrderVirtual(all)
	return all, census, err
}

// dumpVirtual is DumpVirtual without a time limit. If the collector is ZGC, it repeats the reading until ZGC moves no
// objects during it. After zgcPatience it returns what it has.
func (s *Session) dumpVirtual(opt DumpOptions, all *[]profile.ThreadDump, census *profile.VirtualCensus) error {
	if opt.Depth > 0 {
		s.Walker.MaxDepth = opt.Depth
	}
	c := s.VM.NewContinuations().ReadFrom(s.timed(virtualLimit))
	if c == nil {
		return ErrNoVirtual
	}
	s.awaitCollection()
	platform, err := s.VM.Threads()
	if err != nil {
		return err
	}
	proc := procfs.OpenDir(s.Process.PID())
	defer proc.Close()
	read := func() { err = s.Walker.DumpUnmounted(c, platform, all, census, unwind.CopyStack) }
	for began := time.Now(); ; time.Sleep(poolPause) { // ZGC may begin a collection during a reading
		rested := s.whileResting(c, proc, read)
		if err != nil || !c.IsZGC() || rested && len(census.Unread) == 0 {
			break
		}
		if time.Since(began) > zgcPatience {
			if !rested {
				read() // ignore what cannot be followed
			}
			break
		}
	}
	return errors.Join(err, s.Process.Alive())
}
