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

// perfRings are the rings of a run, one for each CPU. The members of a Group share theirs.
type perfRings struct {
	cpus    []int // their numbers; events and rings have the same indexes
	steady  ring.Set
	prompt  ring.Set // for threads with Hint.Soon; nil until there is such a thread
	spans   ringSpans
	polls   []unix.PollFd
	checker *checkerThread // the checker of steady; nil: the sampling thread looks into these rings every perfSoon
	size    int            // the size of each ring of steady, if there is room
	denied  bool           // there was no room for prompt on these CPUs

	// The present reading, or the last one.
	cpu  int
	ring *ring.Ring

	ts unix.Timespec
}

// ringSpans writes spans into the rings. steady and prompt are nil if that is not possible.
type ringSpans struct {
	*span.Reader
	steady, prompt *span.Outputs
	alone          int // a program that only writes spans, for threads with Hint.Soon; -1: there is none
}

// openPrompt opens the outputs to the rings of threads with Hint.Soon.
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

// perfSoon bounds the time until goprof looks at a sample, so that it notes new code in time (vmstructs/sightings.go,
// noteWithin).
const perfSoon = int64(2_500_000)

// eachWakes reports whether each sample wakes the checker up. If a CPU's samples are closer together than perfSoon,
// there is no checker, and the sampling thread looks into the rings every perfSoon. An interrupt that wakes no thread
// costs less, and at 1,000 Hz copies of 64 KB fill a ring within 60 ms.
func eachWakes(interval int64) bool { return interval >= perfSoon }

// openPerfRings makes rings. Programs write spans into them through outputs, which may be nil.
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

// openPrompt makes rings for these CPUs. Each sample in them wakes the sampling thread.
func (r *perfRings) openPrompt(cpus []int, size int) (ring.Set, error) {
	rings, err := openRings(cpus, size)
	r.polls = append(r.polls, rings.Polls()...)
	return rings, err
}

// promptRings returns the rings of threads with Hint.Soon, whose samples wake the sampling thread. These threads have
// their own rings, because the kernel wakes all events of a ring, even thousands (kernel/events/core.c,
// ring_buffer_wakeup).
func (r *perfRings) promptRings() ring.Set {
	if r.prompt == nil && !r.denied {
		rings, err := r.openPrompt(r.cpus, r.size)
		if r.prompt, r.denied = rings, err != nil; err == nil {
			r.spans.openPrompt(r.cpus, rings)
		}
	}
	if r.prompt == nil {
		return r.steady // samples there wake nothing: the memory of threads is read later, and the looks are marked so
	}
	return r.prompt
}

// havePrompt reports whether threads with Hint.Soon can have rings of their own.
func (r *perfRings) havePrompt() bool { return r.promptRings()[0] != r.steady[0] }

// takeIn opens rings for new CPUs: for all of them, or for none, because a ring has its CPU's index.
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

// startChecker starts a checker if each sample can wake it.
func (r *perfRings) startChecker(cpu *arch.CPU, chain, each bool) {
	if !each {
		return
	}
	if r.checker = startChecker(r.steady, cpu, chain); r.checker != nil {
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

// drain hands over the records of all rings, first those of threads with Hint.Soon.
func (r *perfRings) drain(to ring.Taker) {
	r.checker.answer()
	for _, rings := range [2]ring.Set{r.prompt, r.steady} {
		for i, ring := range rings {
			r.cpu, r.ring = i, ring
			ring.Drain(to)
		}
	}
}

// isSteady reports whether the present record lies in a ring of steady.
func (r *perfRings) isSteady() bool { return r.ring == r.steady[r.cpu] }

func (r *perfRings) hasNews() bool {
	return r.prompt.HaveRecords() || r.checker != nil && r.checker.hasCalled()
}

// nextLook returns the moment of the next look into the rings, at the latest until.
func (r *perfRings) nextLook(now, until int64) int64 {
	if r.checker == nil {
		return min(until, now+perfSoon)
	}
	return until
}

// hiddenMost bounds a sleep that Go's scheduler does not know of. A garbage collection waits for the end of such a
// sleep (ptrace.LeaveInPeace), and all of goprof's work waits for the collection.
const hiddenMost = int64(40 * time.Millisecond)

// wait sleeps until the checker calls, until a thread with Hint.Soon has a sample, or until the moment until. Like
// ptrace.SleepUntil, wait sleeps without the knowledge of Go's scheduler. The OS thread keeps its priority meanwhile.
// Without that priority, the rings could be full on a busy machine before the thread had a CPU again.
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
