//go:build linux

package perf

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
)

// perfRings are the rings of a run, one for each CPU, and when to look into them. The members of a Group share
// theirs.
type perfRings struct {
	cpus    []int // their numbers; events and rings go by the index here
	steady  ring.Set
	prompt  ring.Set // of threads with Hint.Soon; none until there is such a thread
	polls   []unix.PollFd
	checker *checkerThread // at steady; nil: we wait for those rings ourselves
	size    int            // of each of steady, if there is room
	denied  bool           // there was no room for prompt, with these CPUs

	// The reading that is under way, or was last.
	cpu  int
	ring *ring.Ring

	found   bool  // the last reading found something
	often   int   // how many finds in a row have come within perfSoon of the one before, up to oftenMost
	readAt  int64 // when the rings were read last
	foundAt int64 // when they had something last
	turn    ownTurn
	ts      unix.Timespec
}

const (
	// perfSoon is how soon a sample is read, so that code which is new to goprof is noted in time
	// (vmstructs/sightings.go, noteWithin). Where samples come less often each of them wakes us up. Where they come more
	// often we look into the rings that often: an interrupt that wakes nobody costs a thread less.
	perfSoon = int64(2_500_000)
	// oftenMost finds in a row that come so soon show that many threads run: their samples are read together.
	oftenMost = 8
)

// eachWakes reports whether each sample wakes us up, where a thread's samples are that far apart.
func eachWakes(interval int64) bool { return interval >= perfSoon }

// openPerfRings makes a ring for each of these CPUs.
func openPerfRings(cpus []int, size int) (*perfRings, error) {
	r := &perfRings{cpus: cpus, size: size}
	var err error
	if r.steady, err = r.openRings(cpus, size); err != nil {
		return nil, err
	}
	return r, nil
}

// Open makes a ring for each of these CPUs, or none.
func (r *perfRings) openRings(cpus []int, size int) (ring.Set, error) {
	rings, err := ring.Open(cpus, size, min(ring.Least, size))
	r.polls = append(r.polls, rings.Polls()...)
	return rings, err
}

// promptRings are the rings of threads with Hint.Soon: their samples wake us up. These threads have rings of their own,
// since the kernel wakes up all events of a ring, be there thousands (kernel/events/core.c, ring_buffer_wakeup).
func (r *perfRings) promptRings() ring.Set {
	if r.prompt == nil && !r.denied {
		rings, err := r.openRings(r.cpus, r.size)
		r.prompt, r.denied = rings, err != nil
	}
	if r.prompt == nil {
		return r.steady // the threads are looked at later then, and their looks say so
	}
	return r.prompt
}

// havePrompt reports whether threads with Hint.Soon can have rings of their own.
func (r *perfRings) havePrompt() bool { return r.promptRings()[0] != r.steady[0] }

// takeIn opens rings for CPUs that have come: all, or none, since a ring is found by its CPU's index.
func (r *perfRings) takeIn(fresh []int) bool {
	r.denied = false
	size := min(r.size, ring.Share(len(r.cpus)+len(fresh), ring.Most))
	steady, err := r.openRings(fresh, size)
	if err != nil {
		return false
	}
	var prompt ring.Set
	if r.prompt != nil {
		if prompt, err = r.openRings(fresh, size); err != nil {
			r.closeRings(steady)
			return false
		}
	}
	r.cpus = append(r.cpus, fresh...)
	r.steady, r.prompt = append(r.steady, steady...), append(r.prompt, prompt...)
	return true
}

// startChecker starts a checker. Then samples that can wait do not end a wait.
func (r *perfRings) startChecker(cpu *arch.CPU, chain bool, waits int64) {
	if r.checker = startChecker(r.steady, cpu, chain, waits); r.checker == nil {
		return
	}
	for _, ring := range r.steady {
		r.waitNoMore(ring.FD)
	}
	r.polls = append(r.polls, unix.PollFd{Fd: int32(r.checker.wakeFD), Events: unix.POLLIN})
}

// stopChecker ends the checker.
func (r *perfRings) stopChecker() {
	if r.checker == nil {
		return
	}
	r.waitNoMore(r.checker.wakeFD)
	r.checker.stopChecker()
	r.checker = nil
	for _, ring := range r.steady {
		r.waitNoMore(ring.FD) // it may be one that has come since
		r.polls = append(r.polls, unix.PollFd{Fd: int32(ring.FD), Events: unix.POLLIN})
	}
}

func (r *perfRings) waitNoMore(fd int) {
	r.polls = slices.DeleteFunc(r.polls, func(p unix.PollFd) bool { return p.Fd == int32(fd) })
}

func (r *perfRings) closeRings(rings ring.Set) {
	for _, ring := range rings {
		r.waitNoMore(ring.FD)
	}
	rings.Close()
}

func (r *perfRings) close() {
	r.stopChecker()
	r.closeRings(r.steady)
	r.closeRings(r.prompt)
	r.turn.close()
}

// drain hands over the records of all rings, those of prompt threads first.
func (r *perfRings) drain(to ring.Taker) {
	r.found = false
	r.checker.answer()
	for _, rings := range [2]ring.Set{r.prompt, r.steady} {
		for i, ring := range rings {
			r.cpu, r.ring = i, ring
			r.found = ring.Drain(to) || r.found
		}
	}
	r.noteReading(ptrace.Monotonic())
}

// isSteady reports whether the record that is being read lies in the ring of the threads without Hint.Soon.
func (r *perfRings) isSteady() bool { return r.ring == r.steady[r.cpu] }

// noteReading notes how often the rings have something for us.
func (r *perfRings) noteReading(now int64) {
	r.readAt = now
	if !r.found {
		return
	}
	if now-r.foundAt > perfSoon+perfSoon/4 {
		r.often = 0
	} else {
		r.often = min(r.often+1, oftenMost)
	}
	r.foundAt = now
}

// hasNews reports whether there is something to read now.
func (r *perfRings) hasNews() bool {
	if r.checker != nil {
		return r.checker.hasCalled() || r.prompt.HaveRecords()
	}
	return r.prompt.HaveRecords() || r.steady.HaveRecords()
}

// comeTogether reports whether samples come so often that we look for them together. each says whether each sample
// wakes us up.
func (r *perfRings) comeTogether(each bool) bool {
	return r.prompt == nil && (!each || r.checker == nil && r.often == oftenMost)
}

// longSleep is how long a sleep must be for it to be told to Go's scheduler. Where CPUs are short there are no long
// sleeps (ownTurn).
const longSleep = int64(20 * time.Millisecond)

// wait sleeps until there is a sample, or until that moment. each says whether each sample wakes us up. Like
// ptrace.SleepUntil, wait does not tell Go's scheduler of a short sleep; see there. It is called on an OS thread of its
// own, with the priority of the sampling thread.
//
// Where samples come often, wait does not look for them before perfSoon has passed since the last reading. Samples of
// threads with Hint.Soon do not wait.
func (r *perfRings) wait(until int64, each bool) {
	together := r.comeTogether(each)
	if together || !each {
		until = min(until, r.readAt+perfSoon)
	}
	now := ptrace.Monotonic()
	if until <= now {
		return
	}
	long := until-now >= longSleep
	if long && !r.turn.comesSoon(now) {
		until, long = now+longSleep/2, false
	}
	if together {
		r.ts = unix.NsecToTimespec(until)
		ptrace.SleepUntil(&r.ts)
		return
	}
	r.ts = unix.NsecToTimespec(until - now)
	// A garbage collection would wait for the end of a sleep that the scheduler does not know (ptrace.LeaveInPeace),
	// with all of goprof's work standing still.
	if long && ptrace.WithoutPriority(func() { ring.SleepUntil(r.polls, &r.ts, true) }) {
		r.turn.note(ptrace.Monotonic())
		return
	}
	ring.SleepUntil(r.polls, &r.ts, false)
}
