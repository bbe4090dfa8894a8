//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"goprof/process"
	"goprof/profile"
	"goprof/sampler"
)

// A command ends, whatever the target's memory and files do. A call into the target that hangs cannot be ended. So the
// goroutine of the call is left behind (process.CallWatch), and the command continues with what it has.

const (
	// hangTick and hangTicks bound how long a call may take: 3 to 5 s. Ten checks a second were a tenth of an agent's CPU
	// time.
	hangTick  = time.Second
	hangTicks = 3
	// attachLimit bounds how long attaching may take. Besides reading memory it opens files, and each may take 2 s.
	attachLimit = 15 * time.Second
	// attachPatience is how many of these limits attaching may take if goprof has no CPU.
	attachPatience = 4
	// engineLimit bounds how long a sampling thread may take to end. It is longer than that thread waits for late stops.
	// The thread may hang in the kernel while the target runs exec.
	engineLimit = 15 * time.Second
	// virtualLimit bounds how long goprof searches for virtual threads and reads them.
	virtualLimit = 30 * time.Second
	// collectionLimit bounds how long a dump waits for a collection to end.
	collectionLimit = 2 * time.Second
)

// ErrHangs: the sampling thread does not end.
var ErrHangs = errors.New("session: the sampling thread hangs in the kernel")

// hangsAfter returns a channel that is closed if the engine has not ended engineLimit after ctx is done.
func hangsAfter(ctx context.Context, ended <-chan struct{}) <-chan struct{} {
	hangs := make(chan struct{})
	context.AfterFunc(ctx, func() { // in a goroutine only after the end, so that an agent does not have one for each JVM
		select {
		case <-ended:
		case <-time.After(engineLimit):
			close(hangs)
		}
	})
	return hangs
}

// guarded runs f, which reads the target. It returns false if a call of f into the target hangs. Then the process is
// given up, and f no longer uses data that it shares with the caller.
func (s *Session) guarded(f func()) bool {
	if s.Process.GivenUp() {
		return false
	}
	done := make(chan struct{})
	go func() {
		f()
		close(done)
	}()
	watched := watchHangs(s.Process.WatchCalls())
	defer watched.end()
	select {
	case <-done:
		return true
	case <-watched.hangs:
		return false
	}
}

// hangWatch watches one reader of a process.
type hangWatch struct {
	watch *process.CallWatch
	hangs chan struct{} // closed when a call hangs
}

// hangWatches are all watched calls. One ticker serves all of them: otherwise a goprof that records two hundred JVMs
// would wake up two thousand times a second.
var hangWatches struct {
	sync.Mutex
	all     map[*hangWatch]bool
	looking bool
}

func watchHangs(w *process.CallWatch) *hangWatch {
	h := &hangWatch{w, make(chan struct{})}
	hangWatches.Lock()
	defer hangWatches.Unlock()
	if hangWatches.all == nil {
		hangWatches.all = map[*hangWatch]bool{}
	}
	if !hangWatches.looking {
		hangWatches.looking = true
		go lookAtHangs()
	}
	hangWatches.all[h] = true
	return h
}

func (h *hangWatch) end() {
	hangWatches.Lock()
	defer hangWatches.Unlock()
	delete(hangWatches.all, h)
}

// lookAtHangs checks all watched calls, until there are none.
func lookAtHangs() {
	tick := sampler.NewPulse(hangTick, 0)
	defer tick.Stop()
	for ; ; tick.Next(hangTick, 0) {
		<-tick.C
		if !lookOnce() {
			return
		}
	}
}

func lookOnce() (more bool) {
	hangWatches.Lock()
	defer hangWatches.Unlock()
	for h := range hangWatches.all {
		if h.watch.Look(hangTicks) {
			close(h.hangs)
			delete(hangWatches.all, h)
		}
	}
	hangWatches.looking = len(hangWatches.all) > 0
	return hangWatches.looking
}

// OpenInTime runs work, which opens a process and calls opened with it. It returns false if work takes too long, or if
// a call into the process hangs.
func OpenInTime[T any](work func(opened func(*process.Process)) T) (result T, ok bool) {
	done := make(chan T, 1)
	processes := make(chan *process.Process, 1)
	go func() { done <- work(func(p *process.Process) { processes <- p }) }()
	var watch *process.CallWatch
	tick := time.NewTicker(hangTick)
	defer tick.Stop()
	limit, patience := time.After(attachLimit), attachPatience
	for {
		select {
		case result = <-done:
			return result, true
		case p := <-processes:
			watch = p.WatchCalls()
		case <-limit:
			if patience--; patience == 0 || process.CallSleeps() {
				return result, false
			}
			limit = time.After(attachLimit) // goprof has no CPU
		case <-tick.C:
			if watch != nil && watch.Look(hangTicks) {
				return result, false
			}
		}
	}
}

// maxNotes bounds the threads that notes name.
const maxNotes = 5

// silentNotes names the threads whose memory did not answer. To do so, it reads nothing that could hang.
func (r *recording) silentNotes(stats *sampler.Stats) (notes []profile.Note) {
	for i, tid := range stats.Silent {
		if i == maxNotes {
			break
		}
		name := "?"
		if th := r.dir.threads[tid]; th != nil && th.name != "" {
			name = th.name
		} else if k, err := r.Process.Thread(tid); err == nil {
			name = k.Comm // this file of /proc never makes its reader wait
		}
		label := fmt.Sprintf("[%s tid=%d]", name, tid)
		notes = append(notes, profile.Note{Name: "memory-hangs",
			Text: "thread " + label + ": its memory did not answer in time, so it was let go and left alone"})
	}
	return notes
}

// timed is a target that can be read until its time limit.
type timed struct {
	process.Target
	until time.Time
	over  error
}

func (s *Session) timed(limit time.Duration) timed {
	return timed{s.Process, time.Now().Add(limit), fmt.Errorf("the %v for this were over", limit)}
}

func (t timed) ended() bool { return time.Now().After(t.until) }

func (t timed) Read(addr uint64, b []byte) error {
	if t.ended() {
		return t.over
	}
	return t.Target.Read(addr, b)
}

func (t timed) ReadMany(rs []process.Range) {
	if t.ended() {
		for i := range rs {
			rs[i].OK = false
		}
		return
	}
	t.Target.ReadMany(rs)
}
