//go:build linux

package agent

import (
	"cmp"
	"context"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"goprof/process"
	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/resource"
	"goprof/sampler"
	"goprof/sampler/perf"
	"goprof/sampler/ring"
)

// Others samples the processes that the agent does not record: programs that are no JVM, JVMs that cannot be recorded
// or do next to nothing, and the kernel's threads. The kernel takes the samples (perf.Host). A sample has the calls to
// which frame pointers lead, so code without frame pointers ends a stack early. Such a stack is marked as truncated.
//
// Others reads the rings once in a beat. All of it belongs to the goroutine of Run, but claims and what is atomic.
type Others struct {
	host     *perf.Host
	o        OthersOptions
	interval atomic.Int64
	every    atomic.Int64  // from one batch to the next
	maxCPU   atomic.Uint64 // the bits of Settings.MaxCPU
	rests    atomic.Int64  // until when no process is read: there is no memory for it
	samples  atomic.Int64
	lost     atomic.Int64
	at       time.Time     // of the last reading
	each     time.Duration // what a sample stands for that was not read yet

	mu     sync.Mutex
	claims map[int][]claim

	known   map[int]*other
	changed map[int]int64  // when processes last ended, began or became another program, of what take works off
	names   map[int]string // of processes that have begun, or have become another program, and were not sampled yet
	opened  int
	purse   purse
	funcs   map[profile.Func]*profile.Func
	groups  map[string]*othersGroup
	began   time.Time // of the batches
	machine string    // its name
	span    *countedTime
}

// OthersOptions are how Others works.
type OthersOptions struct {
	Settings Settings
	Version  string // of goprof
	CPUs     int
	Enrich   func(pid int, a *resource.Attributes)
	Offer    func(*batch.Batch)
}

// claim is a time in which batches of a process come from elsewhere, or are not wanted.
type claim struct{ from, until int64 }

const forGood = int64(1<<63 - 1)

// The bounds of what is kept.
const (
	mostKnown = 4096 // processes
	mostNames = 1 << 14
	mostFuncs = 1 << 16
	// quietFor is how long a process that is not sampled is kept, where there is no room for others.
	quietFor = int64(time.Minute)
)

// OpenOthers begins to take samples.
func OpenOthers(o OthersOptions) (*Others, error) {
	host, err := perf.OpenHost(o.Settings.interval())
	if err != nil {
		return nil, err
	}
	s := newOthers(o)
	s.host = host
	return s, nil
}

func newOthers(o OthersOptions) *Others {
	now := time.Now()
	s := &Others{o: o, at: now, began: now, machine: machineName(o.Enrich), claims: map[int][]claim{},
		known: map[int]*other{}, changed: map[int]int64{}, names: map[int]string{}, funcs: map[profile.Func]*profile.Func{},
		groups: map[string]*othersGroup{}, span: newSpan()}
	s.each = o.Settings.interval()
	s.interval.Store(int64(s.each))
	s.every.Store(int64(o.Settings.Every))
	s.maxCPU.Store(math.Float64bits(o.Settings.MaxCPU))
	return s
}

// machineName is the host's name. In a container the kernel tells another one, and enrich knows better.
func machineName(enrich func(pid int, a *resource.Attributes)) string {
	var a resource.Attributes
	if enrich != nil {
		enrich(kthreadd, &a)
	}
	name, _ := os.Hostname()
	return cmp.Or(a.Get(resource.HostName), name)
}

// Run samples until ctx is done. The last batches are offered before it returns.
func (s *Others) Run(ctx context.Context) {
	defer s.host.Close()
	tick := sampler.NewPulse(beatEvery, 0)
	defer tick.Stop()
	for over := false; !over; tick.Next(beatEvery, 0) {
		select {
		case <-ctx.Done():
			over = true
		case <-tick.C:
		}
		s.beat(time.Now(), over)
	}
	s.forgetAll()
}

// beat takes in what has happened since the last time, and cuts batches when it is time to.
func (s *Others) beat(now time.Time, over bool) {
	runtime.LockOSThread() // its CPU time is counted
	defer runtime.UnlockOSThread()
	began := sampler.ThreadCPU()
	s.purse.share = math.Float64frombits(s.maxCPU.Load()) * float64(s.o.CPUs) * othersPart
	s.purse.add(now.Sub(s.at))
	s.at = now
	if process.TablesShort() { // a JVM needs them more
		s.letGo(now)
	}
	if s.isResting() && s.opened > 0 {
		s.forgetAll()
	}
	s.take(s.host.Read())
	s.each = time.Duration(s.interval.Load())
	s.host.SetInterval(s.each)
	if over || int64(now.Sub(s.began)) >= s.every.Load() {
		s.cut(now)
	}
	s.purse.owed.Add(int64(sampler.ThreadCPU() - began))
}

// SampleOthers has the agent say to o which processes it leaves to o, and when samples count. Call SampleOthers before
// Run.
func (a *Agent) SampleOthers(o *Others) { a.others, o.span, a.budget.aside = o, a.span, othersPart }

// leaveToOthers says which processes are not for Others: JVMs that are recorded, and those that the rules do not want.
func (a *Agent) leaveToOthers() {
	if a.others == nil {
		return
	}
	out := map[int]bool{}
	for pid, g := range a.guests {
		if g.state == denied || g.record != nil && g.record.control != nil {
			out[pid] = true
		}
	}
	a.others.every.Store(int64(a.settings.Every))
	a.others.maxCPU.Store(math.Float64bits(a.settings.MaxCPU))
	a.others.leaveOut(out, time.Duration(float64(a.budget.interval())/max(a.budget.factor, leastShare)))
}

// letGo has Others drop what it has read of processes, and read nothing for leftFor. It returns false where that was
// so already.
func (s *Others) letGo(now time.Time) bool {
	if s == nil || now.UnixNano() < s.rests.Load() {
		return false
	}
	s.rests.Store(now.Add(leftFor).UnixNano())
	return true
}

func (s *Others) isResting() bool { return s.at.UnixNano() < s.rests.Load() }

// mayRead reports whether processes may be read. If half of the questions that may hang do so, the others are for JVMs.
func (s *Others) mayRead() bool {
	return s.purse.mayPay() && !s.isResting() && hanging.Load() < mostHanging/2
}

// spent is the CPU time that Others has used so far.
func (s *Others) spent() time.Duration {
	if s == nil {
		return 0
	}
	return time.Duration(s.purse.paid.Load())
}

// Counts is how many samples there were, and how many records the kernel had no room for.
func (s *Others) Counts() (samples, lost int64) { return s.samples.Load(), s.lost.Load() }

// Unsampled is how many CPUs are on and have no samples of other processes.
func (s *Others) Unsampled() int { return s.host.Unsampled() }

// leaveOut says which processes are left out from now on, and at which interval the others are sampled.
func (s *Others) leaveOut(pids map[int]bool, interval time.Duration) {
	s.interval.Store(int64(interval))
	now := time.Now().UnixNano()
	s.mu.Lock()
	defer s.mu.Unlock()
	for pid, list := range s.claims {
		if last := &list[len(list)-1]; last.until == forGood && !pids[pid] {
			last.until = now
		}
	}
	for pid := range pids {
		if list := s.claims[pid]; len(list) == 0 || list[len(list)-1].until != forGood {
			s.claims[pid] = append(list, claim{now, forGood})
		}
	}
}

func (s *Others) isClaimed(pid int, when int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.claims[pid], func(c claim) bool { return when >= c.from && when < c.until })
}

// dropClaims forgets what is over: all samples up to a moment have been read.
func (s *Others) dropClaims(until int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for pid, list := range s.claims {
		if list = slices.DeleteFunc(list, func(c claim) bool { return c.until < until }); len(list) == 0 {
			delete(s.claims, pid)
		} else {
			s.claims[pid] = list
		}
	}
}

// take takes in what has happened since the last time. samples and tasks are how many of these are missing.
func (s *Others) take(seen []ring.Chain, samples, tasks int64) {
	s.lost.Add(samples + tasks)
	if tasks > 0 { // the end of a process may be among them, and its number another one's by now
		s.doubt()
	}
	clear(s.changed)
	for i := range seen {
		if c := &seen[i]; c.Kind != ring.KindSample && (c.Kind != ring.KindComm || c.Exec) {
			s.changed[c.PID] = c.When
		}
	}
	for i := range seen {
		switch c := &seen[i]; c.Kind {
		case ring.KindFork:
			s.forget(c.PID)
			s.name(c.PID, s.nameOf(c.Parent))
		case ring.KindExit:
			s.forget(c.PID)
		case ring.KindComm:
			if c.Exec {
				s.forget(c.PID)
			}
			if c.Exec || c.PID == c.TID {
				s.name(c.PID, c.Comm)
			}
		case ring.KindSample:
			if c.PID != 0 && s.span.has(c.When) && !s.isClaimed(c.PID, c.When) {
				s.sample(c)
			}
		}
	}
	s.dropClaims(s.at.UnixNano())
}

// sample counts a sample of a process. The process may have ended since.
func (s *Others) sample(c *ring.Chain) {
	p := s.process(c.PID, c.When)
	stack := s.stack(p, c)
	s.group(p).Add(&profile.Sample{At: profile.Instant{Wall: c.When}, Thread: profile.Thread{Name: p.name},
		Stack: stack, CPU: s.each, NoState: true})
	s.samples.Add(1)
}

// purse is the CPU time that Others may use: a share of the agent's budget. To read the rings takes some of it. The
// rest is for reading about processes. What is left is kept for othersAhead.
type purse struct {
	left  time.Duration
	share float64      // CPU time in a second; 0: any
	owed  atomic.Int64 // and not yet paid
	paid  atomic.Int64 // so far
}

// othersPart is the part of the budget for that. It is taken from the part for attaching, so the samples of JVMs keep
// theirs. Samples of other processes cost next to nothing.
const (
	othersPart  = 0.15
	othersAhead = 5 * time.Second
)

func (p *purse) mayPay() bool { return p.left > 0 || p.share == 0 }

func (p *purse) add(passed time.Duration) {
	p.left += time.Duration(float64(passed) * p.share)
	p.left = min(p.left, time.Duration(float64(othersAhead)*p.share))
	p.pay()
}

// pay pays what is owed.
func (p *purse) pay() {
	cost := p.owed.Swap(0)
	p.left -= time.Duration(cost)
	p.paid.Add(cost)
}
