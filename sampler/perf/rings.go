//go:build linux

package perf

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"goprof/arch"
	"goprof/sampler/ptrace"
	"goprof/sampler/ring"
	"goprof/sampler/span"
)

// perfRings are the rings of a run, one for each CPU, and when to look into them. The members of a Group share
// theirs.
type perfRings struct {
	cpus    []int // their numbers; events and rings go by the index here
	steady  ring.Set
	prompt  ring.Set // of threads with Hint.Soon; none until there is such a thread
	spans   ringSpans
	polls   []unix.PollFd
	checker *checkerThread // at steady; nil: the sampling thread looks into those rings each perfSoon
	size    int            // of each of steady, if there is room
	denied  bool           // there was no room for prompt, with these CPUs

	// The reading that is under way, or was last.
	cpu  int
	ring *ring.Ring

	ts unix.Timespec
}

// ringSpans writes spans into the rings. prompt and steady are nil where that is not possible.
type ringSpans struct {
	*span.Reader
	steady, prompt *span.Outputs
	alone          int // a program that does nothing else, for threads with Hint.Soon; -1: there is none
}

// openPrompt is for the rings of threads with Hint.Soon.
func (s *ringSpans) openPrompt(cpus []int, rings ring.Set) {
	s.prompt = s.NewOutputs()
	s.prompt.Open(cpus, rings)
	s.alone = s.prompt.Load()
}

func (s *ringSpans) close() {
	s.steady.CloseEvents()
	s.prompt.Close()
	if s.alone >= 0 {
		unix.Close(s.alone)
	}
}

// perfSoon is how soon a sample is looked at, so that code which is new to goprof is noted in time
// (vmstructs/sightings.go, noteWithin).
const perfSoon = int64(2_500_000)

// eachWakes reports whether each sample wakes the checker up. If a CPU's samples are closer together than perfSoon,
// there is no checker, and the sampling thread looks into the rings that often. An interrupt that wakes no thread costs
// less, and a ring may be full within 60 ms there (copies of 64 KB, at 1,000 Hz).
func eachWakes(interval int64) bool { return interval >= perfSoon }

// openPerfRings makes rings. A program writes spans into them by outputs, which may be nil.
func openPerfRings(cpus []int, size int, spans *span.Reader, outputs *span.Outputs) (*perfRings, error) {
	steady, err := openRings(cpus, size)
	if err != nil {
		return nil, err
	}
	outputs.Open(cpus, steady)
	return &perfRings{cpus: cpus, size: size, steady: steady, spans: ringSpans{spans, outputs, nil, -1}}, nil
}

// openRings makes a ring for each of these CPUs, or none.
func openRings(cpus []int, size int) (ring.Set, error) {
	return ring.Open(cpus, size, min(ring.Least, size))
}

// openPrompt makes rings for these CPUs, of which each sample wakes the sampling thread up.
func (r *perfRings) openPrompt(cpus []int, size int) (ring.Set, error) {
	rings, err := openRings(cpus, size)
	r.polls = append(r.polls, rings.Polls()...)
	return rings, err
}

// promptRings returns the rings of threads with Hint.Soon: their samples wake the sampling thread up. These threads
// have rings of their own, because the kernel wakes up all events of a ring, even thousands (kernel/events/core.c,
// ring_buffer_wakeup).
func (r *perfRings) promptRings() ring.Set {
	if r.prompt == nil && !r.denied {
		rings, err := r.openPrompt(r.cpus, r.size)
		if r.prompt, r.denied = rings, err != nil; err == nil {
			r.spans.openPrompt(r.cpus, rings)
		}
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
	steady, err := openRings(fresh, size)
	if err != nil {
		return false
	}
	var prompt ring.Set
	if r.prompt != nil {
		if prompt, err = r.openPrompt(fresh, size); err != nil {
			steady.Close()
			return false
		}
	}
	r.cpus = append(r.cpus, fresh...)
	r.steady, r.prompt = append(r.steady, steady...), append(r.prompt, prompt...)
	r.spans.steady.Open(r.cpus, r.steady)
	r.spans.prompt.Open(r.cpus, r.prompt)
	return true
}

// startChecker starts a checker where each sample can wake it up.
func (r *perfRings) startChecker(cpu *arch.CPU, chain, each bool, waits int64) {
	if !each {
		return
	}
	if r.checker = startChecker(r.steady, cpu, chain, waits); r.checker != nil {
		r.polls = append(r.polls, unix.PollFd{Fd: int32(r.checker.wakeFD), Events: unix.POLLIN})
	}
}

func (r *perfRings) stopChecker() {
	if r.checker == nil {
		return
	}
	wakeFD := int32(r.checker.wakeFD)
	r.polls = slices.DeleteFunc(r.polls, func(p unix.PollFd) bool { return p.Fd == wakeFD })
	r.checker.stopChecker()
	r.checker = nil
}

func (r *perfRings) close() {
	r.stopChecker()
	r.spans.close()
	r.steady.Close()
	r.prompt.Close()
}

// drain hands over the records of all rings, those of prompt threads first.
func (r *perfRings) drain(to ring.Taker) {
	r.checker.answer()
	for _, rings := range [2]ring.Set{r.prompt, r.steady} {
		for i, ring := range rings {
			r.cpu, r.ring = i, ring
			ring.Drain(to)
		}
	}
}

// isSteady reports whether the record that is being read lies in the ring of the threads without Hint.Soon.
func (r *perfRings) isSteady() bool { return r.ring == r.steady[r.cpu] }

func (r *perfRings) hasNews() bool {
	return r.prompt.HaveRecords() || r.checker != nil && r.checker.hasCalled()
}

// nextLook is the moment of the next look into the rings, which is to be at until.
func (r *perfRings) nextLook(now, until int64) int64 {
	if r.checker == nil {
		return min(until, now+perfSoon)
	}
	return until
}

// hiddenMost bounds a sleep of which Go's scheduler does not know: a garbage collection waits for its end
// (ptrace.LeaveInPeace), with all of goprof's work standing still.
const hiddenMost = int64(40 * time.Millisecond)

// wait sleeps until the checker calls, until a thread with Hint.Soon has a sample, or until that moment. Like
// ptrace.SleepUntil, wait does not tell Go's scheduler that it sleeps. It is called on an OS thread of its own, which
// keeps the priority of the sampling thread: without that priority, the rings could be full on a busy machine before
// the thread had a CPU again.
func (r *perfRings) wait(until int64) {
	now := ptrace.Monotonic()
	until = r.nextLook(now, until)
	for ; now < until; now = ptrace.Monotonic() {
		r.ts = unix.NsecToTimespec(min(until-now, hiddenMost))
		if ring.SleepUntil(r.polls, &r.ts) {
			return
		}
	}
}
