//go:build linux

package agent

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"goprof/diagnose"
	"goprof/profile"
	"goprof/profile/resource"
	"goprof/sampler"
	"goprof/sampler/perf"
	"goprof/sampler/ring"
	"goprof/sampler/threads"
	"goprof/sampler/visit"
	"goprof/session"
)

// ThisHost is the World of the machine that goprof runs on.
type ThisHost struct {
	diagnose.Host
	version string
	growth  int64 // the last value of LetGrow
	visits  together[*visit.Group]
	perf    together[*perf.Group]
	stops   stopped
	listed  *processList
	enrich  func(pid int, a *resource.Attributes)
}

// together is a group that samples all JVMs.
type together[G sampling] struct {
	group G
	ended chan struct{} // closed when the group has ended
}

// sampling holds the methods that both kinds of groups share.
type sampling interface {
	Run(context.Context) error
	SetInterval(time.Duration)
	Stats() sampler.GroupStats
}

func sampleTogether[G sampling](group G) together[G] { return together[G]{group, make(chan struct{})} }

func (t *together[G]) run(ctx context.Context) error {
	defer close(t.ended)
	return t.group.Run(ctx)
}

// works reports whether JVMs are sampled together.
func (t *together[G]) works() bool {
	select {
	case <-t.ended:
		return false
	default:
		return true
	}
}

// NewHost makes a World of this machine. enrich adds attributes of the process to a batch's resource. It may be nil.
func NewHost(h diagnose.Host, version string, enrich func(pid int, a *resource.Attributes)) *ThisHost {
	const usual = time.Second / 19
	listed := new(processList)
	if h.Proc == "" {
		listed = openProcessList()
	}
	return &ThisHost{Host: h, version: version, listed: listed, enrich: enrich,
		visits: sampleTogether(visit.NewGroup(usual, 0)), perf: sampleTogether(perf.NewGroup(usual, 0))}
}

// Run samples all JVMs together until ctx is done: by perf events of CPUs, and by visits to CPUs. If one of the two is
// not possible, say receives the consequence for an agent that was configured for that engine.
func (h *ThisHost) Run(ctx context.Context, want session.EngineName, say func(string)) {
	var groups sync.WaitGroup
	var said sync.Map // both may have the same consequence
	for _, run := range []func(context.Context) error{h.perf.run, h.visits.run} {
		groups.Go(func() {
			told := h.meaning(run(ctx), want)
			if _, again := said.LoadOrStore(told, nil); told != "" && !again {
				say(told)
			}
		})
	}
	groups.Wait()
}

// meaning returns the consequence for JVMs if a group has ended, or "" if there is none.
func (h *ThisHost) meaning(err error, want session.EngineName) string {
	const visits = "one for all JVMs needs CAP_PERFMON, CAP_SYS_NICE and two CPUs"
	wide := "one for all JVMs needs CAP_PERFMON, CAP_BPF and the first PID namespace"
	if refused := (*ring.Error)(nil); errors.As(err, &refused) {
		wide = "one for all JVMs is not available: " + h.Explain(0, err).Why
	}
	switch {
	case err == nil:
		return ""
	case !errors.Is(err, perf.ErrNoWide) && !errors.Is(err, visit.ErrNoVisits):
		return "goprof no longer samples all JVMs together: " + err.Error()
	case want == session.PerfEngine && !h.perf.works():
		return "no JVM can be sampled by perf events: " + wide
	case want == session.AutoEngine && !h.perf.works() && h.visits.works():
		return "JVMs are sampled by stops, not by perf events: " + wide
	case want != session.PerfEngine && !h.visits.works() && (want == session.PtraceEngine || !h.perf.works()):
		return "each JVM has a sampler of its own, which costs more: " + visits
	}
	return ""
}

// Group returns the counters of the group.
func (h *ThisHost) Group() sampler.GroupStats {
	s, p := h.visits.group.Stats(), h.perf.group.Stats()
	s.Met += p.Met
	s.Members += p.Members
	s.CPU += p.CPU
	s.Unsampled += p.Unsampled
	return s
}

// PIDs lists the processes of this host. It returns nil if the list cannot be read. Only one goroutine may call it. The
// list is valid until the next call.
func (h *ThisHost) PIDs() []int { return h.listed.read(time.Now(), h.Host.PIDs) }

func (h *ThisHost) CPU(pid int) time.Duration { return threads.ProcessCPU(pid) }
func (h *ThisHost) Own() time.Duration        { return session.OwnCPU() }
func (h *ThisHost) CPUs() int                 { return runtime.NumCPU() }

func (h *ThisHost) SetInterval(every time.Duration) {
	h.visits.group.SetInterval(every)
	h.perf.group.SetInterval(every)
}

// Place finds out where the JVM runs.
func (h *ThisHost) Place(j *Candidate) {
	j.Cgroup = h.Cgroup(j.PID)
	if j.Container != "" {
		j.Namespace, _ = inTime(func() string { return podNamespace(j.PID) })
	}
}

func (h *ThisHost) Attach(pid int) (Target, error) {
	s, err := session.Attach(pid)
	if err != nil {
		return nil, err
	}
	return &hostTarget{host: h, session: s}, nil
}

type hostTarget struct {
	host    *ThisHost
	session *session.Session
	jvm     Candidate
}

func (t *hostTarget) Tell(j *Candidate) {
	about := t.session.About()
	j.Version = t.session.VM.Version().JDK()
	j.Vendor, _ = inTime(func() string { return diagnose.Vendor(t.session.Process) })
	j.Collector = t.session.VM.Collector()
	if about.MainClass != "" {
		j.Main = about.MainClass
	}
	t.jvm = *j
}

func (t *hostTarget) Alive() bool { return t.session.Process.Alive() == nil }
func (t *hostTarget) Close()      { t.session.Close() }

// Resource returns the attributes from enrich and those that goprof itself finds.
func (t *hostTarget) Resource() (a resource.Attributes) {
	if pid := t.jvm.PID; t.host.enrich != nil {
		a, _ = inTime(func() (a resource.Attributes) {
			t.host.enrich(pid, &a)
			return a
		})
		if !t.Alive() { // the number may now belong to another process
			a = nil
		}
	}
	own := resource.Process{Service: t.jvm.Name(), PID: t.jvm.PID, Version: t.jvm.Version, Owner: t.jvm.User,
		Container: t.jvm.Container, Host: t.session.About().Host}
	a.Add(own.Attributes())
	if a.Get(resource.PodNamespace) == "" {
		a.Set(resource.PodNamespace, t.jvm.Namespace)
	}
	return a
}

// Record samples the JVM, together with the other JVMs if possible.
func (t *hostTarget) Record(ctx context.Context, how Recording) (profile.Summary, error) {
	s := how.Settings
	pace := new(atomic.Int64)
	opt := session.RecordOptions{Mode: s.Mode, Engine: session.PtraceEngine, Interval: how.Interval, Sink: versioned{
		how.Sink, t.host.version}, Lean: true, Pace: pace}
	if !s.Mode.IsWall() {
		var err error
		if opt.Engine, err = t.chooseEngine(s.Engine); err != nil {
			return profile.Summary{}, err
		}
		opt.Yield = opt.Engine == session.PerfEngine && s.Engine == session.AutoEngine
		opt.Member = t.member(opt.Engine)
	}
	ctx, end := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer end()
	opt.Started = func(e sampler.Engine) {
		beside.Go(func() { t.recordBeside(ctx, &how) })
		if l, ok := e.(latest); ok && how.Started != nil {
			m, _ := e.(sharing)
			how.Started(&control{latest: l, member: m, pace: pace, fixed: opt.Engine == session.PerfEngine && m == nil})
		}
	}
	_, sum, err := t.session.Record(ctx, opt)
	switch {
	case opt.Member != nil && t.member(opt.Engine) == nil:
		err = nil // the group has ended: the agent attaches again
	case errors.Is(err, session.ErrCut):
		t.host.stops.note(&t.jvm)
		err = nil // the agent attaches again, with the other engine
	}
	return sum, err
}

// chooseEngine chooses the engine. One sampler for all JVMs costs less than one for each.
func (t *hostTarget) chooseEngine(want session.EngineName) (session.EngineName, error) {
	auto := want == session.AutoEngine
	if auto && (t.host.stops.has(&t.jvm) || !t.host.perf.works() && t.host.visits.works()) {
		want = session.PtraceEngine
	}
	c, err := t.host.ChooseEngine(want, t.jvm.PID, 0)
	return c.Engine, err
}

// member returns the function that adds a JVM to the group of an engine, or nil if there is no such group.
func (t *hostTarget) member(by session.EngineName) func(pid int) sampler.Engine {
	switch {
	case by == session.PerfEngine && t.host.perf.works():
		return func(pid int) sampler.Engine { return t.host.perf.group.Member(pid) }
	case by == session.PtraceEngine && t.host.visits.works():
		return func(pid int) sampler.Engine { return t.host.visits.group.Member(pid, t.session.Process.CPU()) }
	}
	return nil
}

// latest is common to all engines.
type latest interface{ Latest() sampler.Stats }

// sharing is a member of a group.
type sharing interface{ SetShare(float64) }

// control governs an engine.
type control struct {
	latest
	member sharing // nil if the engine is of this JVM alone
	pace   *atomic.Int64
	fixed  bool // the kernel takes the samples
}

func (c *control) Govern(interval time.Duration, share float64) bool {
	switch {
	case c.fixed:
		return false
	case c.member != nil: // the interval belongs to the group
		c.member.SetShare(share)
	default:
		c.pace.Store(int64(float64(interval) / max(share, leastShare)))
	}
	return true
}

// versioned adds goprof's version to a Sink's summary.
type versioned struct {
	session.Sink
	version string
}

func (v versioned) Begin(at profile.Instant, m profile.Meta) {
	m.Version = v.version
	v.Sink.Begin(at, m)
}
