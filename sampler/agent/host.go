//go:build linux

package agent

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"goprof/profile"
	"goprof/profile/resource"
	"goprof/sampler"
	"goprof/sampler/diagnose"
	"goprof/sampler/session"
)

// ThisHost is the World of the machine that goprof runs on.
type ThisHost struct {
	diagnose.Host
	version string
	growth  int64 // what LetGrow has set
	group   *sampler.Group
	ended   chan struct{} // closed when the group has
	why     atomic.Pointer[error]
	enrich  func(pid int, a *resource.Attributes)
}

// NewHost makes a World of this machine. enrich adds to the attributes that say whose the batches of a process are. It
// may be nil.
func NewHost(h diagnose.Host, version string, enrich func(pid int, a *resource.Attributes)) *ThisHost {
	return &ThisHost{Host: h, version: version, enrich: enrich, ended: make(chan struct{}),
		group: sampler.NewGroup(time.Second/19, 0)}
}

// Run takes samples for all JVMs together, until ctx is done. Where that cannot be done, Run returns
// sampler.ErrNoVisits at once. Each JVM then has a sampler of its own, which costs more.
func (h *ThisHost) Run(ctx context.Context) error {
	err := h.group.Run(ctx)
	h.why.Store(&err)
	close(h.ended)
	return err
}

// together reports whether JVMs are sampled together.
func (h *ThisHost) together() bool {
	select {
	case <-h.ended:
		return false
	default:
		return true
	}
}

// Group is what was done for all JVMs together.
func (h *ThisHost) Group() sampler.GroupStats { return h.group.Stats() }

func (h *ThisHost) CPU(pid int) time.Duration       { return sampler.ProcessCPU(pid) }
func (h *ThisHost) Own() time.Duration              { return session.OwnCPU() }
func (h *ThisHost) CPUs() int                       { return runtime.NumCPU() }
func (h *ThisHost) SetInterval(every time.Duration) { h.group.SetInterval(every) }

// Place finds out where the JVM runs.
func (h *ThisHost) Place(j *Candidate) {
	j.Cgroup = h.Cgroup(j.PID)
	if j.Container != "" {
		j.Namespace, _ = inTime(func() string { return podNamespace(j.PID) })
	}
}

// Attach opens a JVM.
func (h *ThisHost) Attach(pid int) (Target, error) {
	s, err := session.Attach(pid)
	if err != nil {
		return nil, err
	}
	return &hostTarget{host: h, session: s}, nil
}

// hostTarget is a JVM of this host.
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

// Resource is what enrich tells, and what goprof knows by itself.
func (t *hostTarget) Resource() (a resource.Attributes) {
	if pid := t.jvm.PID; t.host.enrich != nil {
		a, _ = inTime(func() (a resource.Attributes) {
			t.host.enrich(pid, &a)
			return a
		})
		if !t.Alive() { // the number may be another process's by now
			a = nil
		}
	}
	var own resource.Attributes
	own.Set(resource.ServiceName, t.jvm.Name())
	own.SetInt(resource.ProcessPID, int64(t.jvm.PID))
	own.Set(resource.ProcessOwner, t.jvm.User)
	own.Set(resource.RuntimeName, "OpenJDK Runtime Environment")
	own.Set(resource.RuntimeVersion, t.jvm.Version)
	own.Set(resource.ContainerID, t.jvm.Container)
	own.Set(resource.HostName, t.session.About().Host)
	a.Add(own)
	return a
}

// Record samples the JVM, together with the others where that can be done.
func (t *hostTarget) Record(ctx context.Context, how Recording) (profile.Summary, error) {
	s := how.Settings
	pace := new(atomic.Int64)
	opt := session.RecordOptions{Mode: s.Mode, Engine: session.PtraceEngine, Interval: how.Interval, Sink: versioned{
		how.Sink, t.host.version}, Lean: true, Pace: pace}
	if !s.Mode.IsWall() {
		c, err := t.host.ChooseEngine(s.Engine, t.jvm.PID, 0, s.Engine == session.AutoEngine && t.session.RunsVirtual())
		if err != nil {
			return profile.Summary{}, err
		}
		opt.Engine = c.Engine
	}
	if opt.Engine == session.PtraceEngine && t.host.together() {
		opt.Group = t.host.group
	}
	ctx, end := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer end()
	opt.Started = func(e sampler.Engine) {
		beside.Go(func() { t.recordBeside(ctx, &how) })
		if l, ok := e.(latest); ok && how.Started != nil {
			m, _ := e.(*sampler.Member)
			how.Started(&control{latest: l, member: m, pace: pace, fixed: opt.Engine == session.PerfEngine})
		}
	}
	_, sum, err := t.session.Record(ctx, opt)
	if opt.Group != nil && (errors.Is(err, sampler.ErrNoVisits) || !t.host.together()) {
		err = nil // the group has ended: the JVM is taken up again on its own
	}
	return sum, err
}

// latest is what all engines can tell.
type latest interface{ Latest() sampler.Stats }

// control governs an engine.
type control struct {
	latest
	member *sampler.Member
	pace   *atomic.Int64
	fixed  bool // the kernel takes the samples
}

func (c *control) Govern(interval time.Duration, share float64) bool {
	switch {
	case c.fixed:
		return false
	case c.member != nil: // the interval is the group's
		c.member.SetShare(share)
	default:
		c.pace.Store(int64(float64(interval) / max(share, leastShare)))
	}
	return true
}

// versioned notes which goprof it was.
type versioned struct {
	session.Sink
	version string
}

func (v versioned) Begin(at profile.Instant, m profile.Meta) {
	m.Version = v.version
	v.Sink.Begin(at, m)
}
