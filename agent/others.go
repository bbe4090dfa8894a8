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

// Others samples the processes that the agent does not record: programs other than JVMs, JVMs that cannot be recorded
// or are nearly idle, and the kernel's threads. The kernel takes the samples (perf.Host). A sample holds the calls that
// frame pointers lead to, so a stack ends early at code without frame pointers. Such a stack is marked as truncated.
//
// Others reads the rings once in a beat. What it reads about a process holds for the samples before that only if the
// next records show no change of the process. So samples are held until then. Samples of a JVM are held until the agent
// knows whether the rules exclude it.
//
// The fields of Others belong to the goroutine of Run, except claims and the atomic ones.
type Others struct {
	host     *perf.Host
	o        OthersOptions
	interval atomic.Int64
	every    atomic.Int64  // from one batch to the next
	maxCPU   atomic.Uint64 // the bits of Settings.MaxCPU
	rests    atomic.Int64  // until then no process is read, because memory is short
	samples  atomic.Int64
	lost     atomic.Int64
	at       time.Time     // of the last reading
	each     time.Duration // the interval of the samples that are not read yet

	mu       sync.Mutex
	claims   map[int][]claim
	verdicts map[int]verdict

	known   map[int]*other
	changed map[int]int64     // time of a process's last start, end or exec in the records that take handles
	names   map[int]string    // names of processes that have begun or become another program, and are not sampled yet
	held    []heldSample      // not counted yet
	unsure  map[*other]*other // processes about which was read since the last records, and what was known before
	opened  int
	purse   purse
	funcs   map[profile.Func]*profile.Func
	groups  map[string]*othersGroup
	began   time.Time // when the current batches began
	machine string    // its host name
	span    *countedTime
}

// OthersOptions are the settings of Others.
type OthersOptions struct {
	Settings Settings
	Version  string // of goprof
	CPUs     int
	Enrich   func(pid int, a *resource.Attributes)
	Offer    func(*batch.Batch)
}

// verdict is the agent's decision about a JVM.
type verdict uint8

const (
	undecided verdict = iota
	left              // to Others
	covered           // by other batches
	excluded          // by the rules
)

// claim is a time in which Others makes no batches of a JVM. If the rules exclude it, the samples that are held at that
// moment are left out, too.
type claim struct {
	from, until int64
	why         verdict
}

const forGood = int64(math.MaxInt64)

// decidedWithin is how long samples of a JVM are held without a verdict. It may be starting, or goprof attaches to it.
const decidedWithin = int64(30 * time.Second)

type heldSample struct {
	of *other
	ring.Chain
	stack *profile.Stack
	each  time.Duration
}

// Limits of what is kept.
const (
	mostKnown = 4096 // processes
	mostNames = 1 << 14
	mostFuncs = 1 << 16
	// quietFor is how long an unsampled process is kept if there is no room for others.
	quietFor = int64(time.Minute)
)

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
		known: map[int]*other{}, changed: map[int]int64{}, names: map[int]string{}, unsure: map[*other]*other{},
		funcs: map[profile.Func]*profile.Func{}, groups: map[string]*othersGroup{}, span: newSpan()}
	s.each = o.Settings.interval()
	s.interval.Store(int64(s.each))
	s.every.Store(int64(o.Settings.Every))
	s.maxCPU.Store(math.Float64bits(o.Settings.MaxCPU))
	return s
}

// machineName returns the host's name. In a container the kernel reports the container's name, so enrich comes first.
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

// beat handles the records since the last beat, and cuts batches that are due.
func (s *Others) beat(now time.Time, over bool) {
	runtime.LockOSThread() // the CPU time of this thread is counted
	defer runtime.UnlockOSThread()
	began := sampler.ThreadCPU()
	s.purse.share = math.Float64frombits(s.maxCPU.Load()) * float64(s.o.CPUs) * othersPart
	s.purse.add(now.Sub(s.at))
	last := s.at
	s.at = now
	if process.TablesShort() { // JVMs need the space more
		s.letGo(now)
	}
	if s.isResting() && s.opened > 0 {
		s.forgetAll()
	}
	s.take(s.host.Read())
	s.each = time.Duration(s.interval.Load())
	s.host.SetInterval(s.each)
	if over {
		s.take(s.host.Read())
		s.end(now)
	} else if int64(last.Sub(s.began)) >= s.every.Load() {
		s.cut(last) // later samples are held
	}
	s.purse.owed.Add(int64(sampler.ThreadCPU() - began))
}

// SampleOthers connects the agent with o: the agent reports to o which processes it leaves to o, and when samples
// count. Call SampleOthers before Run.
func (a *Agent) SampleOthers(o *Others) { a.others, o.span, a.budget.aside = o, a.span, othersPart }

// leaveToOthers passes the verdict about each JVM to Others.
func (a *Agent) leaveToOthers() {
	if a.others == nil {
		return
	}
	out := map[int]verdict{}
	for pid, g := range a.guests {
		switch {
		case g.state == denied:
			out[pid] = excluded
		case g.record != nil && g.record.control != nil:
			out[pid] = covered
		case g.state != opening:
			out[pid] = left
		}
	}
	a.others.every.Store(int64(a.settings.Every))
	a.others.maxCPU.Store(math.Float64bits(a.settings.MaxCPU))
	a.others.leaveOut(out, time.Duration(float64(a.budget.interval())/max(a.budget.factor, leastShare)))
}

// letGo makes Others drop what it has read of processes, and read nothing for leftFor. It returns false if Others was
// already in that state.
func (s *Others) letGo(now time.Time) bool {
	if s == nil || now.UnixNano() < s.rests.Load() {
		return false
	}
	s.rests.Store(now.Add(leftFor).UnixNano())
	return true
}

func (s *Others) isResting() bool { return s.at.UnixNano() < s.rests.Load() }

// mayRead reports whether processes may be read. If half of mostHanging requests hang, the other half is kept for JVMs.
func (s *Others) mayRead() bool {
	return s.purse.mayPay() && !s.isResting() && hanging.Load() < mostHanging/2
}

// spent returns the CPU time that Others has used.
func (s *Others) spent() time.Duration {
	if s == nil {
		return 0
	}
	return time.Duration(s.purse.paid.Load())
}

// Counts returns the number of samples, and the number of records that the kernel had no room for.
func (s *Others) Counts() (samples, lost int64) { return s.samples.Load(), s.lost.Load() }

// Unsampled returns how many online CPUs have no samples of other processes.
func (s *Others) Unsampled() int { return s.host.Unsampled() }

// leaveOut sets the verdicts from now on, and the interval of the samples.
func (s *Others) leaveOut(verdicts map[int]verdict, interval time.Duration) {
	s.interval.Store(int64(interval))
	now := time.Now().UnixNano()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.verdicts = verdicts
	for pid, list := range s.claims {
		if last := &list[len(list)-1]; last.until == forGood && verdicts[pid] <= left {
			last.until = now
		}
	}
	for pid, v := range verdicts {
		if list := s.claims[pid]; v > left && (len(list) == 0 || list[len(list)-1].until != forGood) {
			s.claims[pid] = append(list, claim{now, forGood, v})
		}
	}
}

// isClaimed reports whether a process is not for Others at a moment. held is set for a held sample of a program that
// still runs.
func (s *Others) isClaimed(pid int, when int64, held bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.claims[pid], func(c claim) bool {
		return when < c.until && (when >= c.from || held && c.why == excluded)
	})
}

// waits reports whether a process is a JVM without a verdict.
func (s *Others) waits(p *other) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verdicts[p.pid] == undecided && (p.name == "java" || p.whose.Get(resource.RuntimeName) == jvmRuntime)
}

// dropClaims forgets claims that ended before a moment. All samples up to that moment have been counted.
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

// take handles the records since the last call. samples and tasks are the numbers of missing records of each kind.
func (s *Others) take(seen []ring.Chain, samples, tasks int64) {
	s.lost.Add(samples + tasks)
	clear(s.changed)
	for i := range seen {
		if c := &seen[i]; c.Kind != ring.KindSample && (c.Kind != ring.KindComm || c.Exec) {
			s.changed[c.PID] = c.When
		}
	}
	s.confirm(tasks == 0)
	if tasks > 0 { // the end of a process may be missing, and its number may now belong to another one
		s.doubt()
	}
	s.count(s.at.UnixNano())
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
			if c.PID != 0 && s.span.has(c.When) && !s.isClaimed(c.PID, c.When, false) {
				p := s.process(c.PID, c.When) // it may have ended since
				s.held = append(s.held, heldSample{p, *c, s.stack(p, c), s.each})
			}
		}
	}
	oldest := s.at.UnixNano()
	for i := range s.held {
		oldest = min(oldest, s.held[i].When)
	}
	s.dropClaims(oldest)
}

// confirm decides whether what was read about processes after the last records holds for the samples before. It does
// not hold if the process has changed, or if records of changes may be missing.
func (s *Others) confirm(complete bool) {
	changed := func(p *other) bool { _, is := s.changed[p.pid]; return is }
	for i := range s.held {
		h := &s.held[i]
		if before := s.unsure[h.of]; before != nil && (!complete || changed(h.of)) {
			h.of, h.stack = before, s.stack(before, &h.Chain)
		}
	}
	for p, before := range s.unsure {
		if changed(p) && s.known[p.pid] == p {
			s.close(p)
			s.known[p.pid] = before
		}
	}
	clear(s.unsure)
}

// count counts the held samples, except those of JVMs that wait for a verdict.
func (s *Others) count(now int64) {
	s.held = slices.DeleteFunc(s.held, func(h heldSample) bool {
		runs := s.known[h.PID] == h.of
		if runs && now-h.When < decidedWithin && s.waits(h.of) {
			return false
		}
		if !s.isClaimed(h.PID, h.When, runs) {
			s.group(h.of).Add(&profile.Sample{At: profile.Instant{Wall: h.When}, Thread: profile.Thread{Name: h.of.name},
				Stack: h.stack, CPU: h.each, NoState: true})
			s.samples.Add(1)
		}
		return true
	})
}

// end counts all held samples, and offers the last batches.
func (s *Others) end(now time.Time) {
	s.confirm(false) // no records will follow
	s.count(forGood)
	s.cut(now)
}

// purse is the CPU time that Others may use: a share of the agent's budget. Reading the rings is paid from it first.
// The rest is for reading about processes. An unused rest is kept for othersAhead.
type purse struct {
	left  time.Duration
	share float64      // CPU time per second; 0: no limit
	owed  atomic.Int64 // used and not yet paid
	paid  atomic.Int64 // paid so far
}

// othersPart is the purse's part of the budget. It is taken from the part for attaching, so the samples of JVMs do not
// get fewer. Samples of other processes cost next to nothing.
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

func (p *purse) pay() {
	cost := p.owed.Swap(0)
	p.left -= time.Duration(cost)
	p.paid.Add(cost)
}
