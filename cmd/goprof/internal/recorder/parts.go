//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"goprof/cmd/goprof/product"
	"goprof/output/format"
	"goprof/profile"
	"goprof/sampler"
	"goprof/session"
)

// A recording may have several parts that go into one JFR file: --event cpu,alloc,lock. All events are one part. CPU
// time and each sort of waiting are others: each has its own engine, its own threads to look at, and its own account.
// So each part has its own Session. The parts share the file and the clock. The first part is the leader: it reports
// the threads to the file, and when it ends, all parts end.

type wantedPart struct {
	name string // what --event calls it; empty if there is no other, and it is no waiting
	modeFlags
	engine   session.EngineName
	interval time.Duration
	weighed  profile.Weight
	asked    []session.AskedEvent
}

type part struct {
	flags   *recordFlags
	want    wantedPart
	pid     int
	session *session.Session
	engine  session.EngineName
	event   *session.EventPlan // nil: CPU time, or a mode
	hottest *product.Hottest   // of the file that is being recorded
	visits  chan session.Visit
}

// partModes maps parts that are no events to their modes.
var partModes = map[string]session.Mode{"cpu": session.CPUMode, "wall": session.WallMode}

func modeOfPart(name string) (session.Mode, bool) {
	if m, is := eventModes[name]; is {
		return m.mode, true
	}
	m, is := partModes[name]
	return m, is
}

func namesWaits(event string) bool {
	return slices.ContainsFunc(session.SplitEvents(event), func(name string) bool {
		m, is := modeOfPart(name)
		return is && m == session.WaitingMode
	})
}

// takeParts takes the parts that are no events out of the list of events.
func (f *eventFlags) takeParts(cmd *cobra.Command) error {
	var events []session.AskedEvent
	for i, e := range f.asked {
		if _, is := modeOfPart(e.Name); !is {
			events = append(events, e)
			continue
		}
		if e.Every != 0 {
			return noAmount(cmd, e.Name)
		}
		if i == 0 {
			f.lead = e.Name
		}
		f.others = append(f.others, e.Name)
	}
	f.asked = events
	if slices.Contains(f.others, "lock") && slices.Contains(f.others, "off-cpu") {
		return usageError(cmd, "--event off-cpu has the waits for locks, too: leave out lock",
			with("event", "cpu,off-cpu"))
	}
	return nil
}

func noAmount(cmd *cobra.Command, name string) error {
	return usageError(cmd, fmt.Sprintf("--event %s has no amount behind it: its samples are times", name))
}

// checkParts finds flags that do not go with several parts.
func (f *eventFlags) checkParts(cmd *cobra.Command, o *recordFlags) error {
	given := cmd.Flags().Changed
	cpu := slices.Contains(f.others, profile.ModeCPU)
	perf := f.kernel || o.engine == string(session.PerfEngine)
	switch {
	case o.as != format.JFR:
		return severalInto(cmd, o.as)
	case f.every != "":
		return usageError(cmd, everyHelp, without("every"))
	case !cpu && (given("rate") || given("interval")):
		return usageError(cmd, "--rate and --interval are for CPU time; of events --every says how many become samples",
			without("rate", "interval"))
	case given("weight"):
		return usageError(cmd, "--weight is for one --event or mode; each part has its own", without("weight"))
	case f.kernel && !cpu && len(f.asked) == 0:
		return usageError(cmd, "--kernel is for CPU time and events: of threads that wait, no look shows the kernel's part",
			without("kernel"))
	case f.kernel && cpu && given("engine") && o.engine != string(session.PerfEngine):
		return usageError(cmd, "--kernel needs --engine perf: only the kernel itself sees its part of a stack",
			with("engine", "perf"))
	case cpu && perf && o.maxOverhead > 0:
		return usageError(cmd, "--max-overhead is for --engine ptrace: perf_event does not say what a sample costs",
			without("max-overhead"))
	}
	return nil
}

// parts returns the parts of the recording. The first one leads.
func (f *recordFlags) parts() []wantedPart {
	if len(f.others) == 0 {
		name := ""
		if _, isWait := eventModes[f.event]; isWait {
			name = f.event // the mode does not say which waits these are
		}
		return []wantedPart{{name: name, modeFlags: f.modeFlags, engine: session.EngineName(f.engine), interval: f.interval,
			weighed: f.weighed, asked: f.asked}}
	}
	var parts []wantedPart
	for _, name := range f.others {
		parts = append(parts, f.modePart(name))
	}
	if len(f.asked) == 0 {
		return parts
	}
	events := wantedPart{asked: f.asked}
	for i, e := range f.asked {
		if i > 0 {
			events.name += ","
		}
		events.name += e.Name
	}
	if f.lead == "" {
		return append([]wantedPart{events}, parts...)
	}
	return append(parts, events)
}

// modePart returns a part that is no event, with the defaults that it has when it is recorded alone.
func (f *recordFlags) modePart(name string) wantedPart {
	mode, _ := modeOfPart(name)
	p := wantedPart{name: name, engine: session.EngineName(f.engine), interval: f.interval}
	p.mode = string(mode)
	if mode == session.CPUMode {
		if f.kernel {
			p.engine = session.PerfEngine
		}
		return p
	}
	p.interval = time.Duration(float64(time.Second) / p.rate(0, false))
	if wait, is := eventModes[name]; is {
		p.weighed, p.chosen = profile.WallTime, chosenStates(wait.states)
		if !f.engineGiven {
			p.engine = wait.engine
		}
	}
	return p
}

// chosenStates returns the thread states that belong to an event that is a mode.
func chosenStates(names []string) map[profile.State]bool {
	chosen := map[profile.State]bool{}
	for _, name := range names {
		if s, err := profile.ParseState(name); err == nil {
			chosen[s] = true
		}
	}
	return chosen
}

func (p *part) open(talk io.Writer) (err error) {
	if p.session == nil {
		if p.session, err = session.Attach(p.pid); err != nil {
			return attachError(p.pid, err)
		}
	}
	if err := p.choose(talk); err != nil {
		return err
	}
	return p.findEvent()
}

func (p *part) close() {
	if p.event != nil {
		p.event.Close()
	}
	if p.session != nil {
		p.session.Close()
	}
}

func (p *part) record(ctx context.Context, length time.Duration, sink session.Sink,
	started func(sampler.Engine)) (*profile.Profile, profile.Summary, error) {
	f := p.flags
	threads := f.threads || f.group
	p.hottest = new(product.Hottest)
	var full func(*profile.Profile)
	if sink != nil { // such a product is made from the Sink's samples, and each of them has its thread
		full, threads = p.hottest.Add, false
	}
	stacks, sum, err := p.session.Record(ctx, session.RecordOptions{
		Mode: p.want.session(), NonBlocking: p.want.nonBlocking, NativeOnce: p.want.nativeOnce,
		States:    p.want.wantsState(),
		LeaveIdle: p.want.leaveIdle(f.wants),
		Duration:  length, Interval: p.want.interval, Depth: f.depth, Threads: threads,
		GroupThreads: f.group, HideInternal: f.internal, SureLeaf: f.leaf == leafSure,
		Weight: p.eventWeight(), Engine: p.engine, Wants: f.wants.wants(), MaxOverhead: f.maxOverhead / 100,
		Visits: p.visits, Sink: sink, Full: full, Event: p.event, Kernel: f.kernel && !p.want.session().IsWall(),
		Min: f.min, Wakers: f.wakers, Chain: f.chain, Started: started, Part: p.want.name,
	})
	sum.Meta.Version, stacks.Meta.Version = version(), version()
	return stacks, sum, err
}

// recordParts records all parts. The account is that of the part that leads. It contains the accounts of the others.
func (r *recorder) recordParts(ctx context.Context, length time.Duration, sink session.Sink,
	stop func()) (*profile.Profile, profile.Summary, error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	sums, errs := make([]profile.Summary, len(r.beside)), make([]error, len(r.beside))
	var others sync.WaitGroup
	begun := false
	begin := func(sampler.Engine) {
		begun = true
		for i, p := range r.beside {
			others.Go(func() {
				var stacks *profile.Profile
				if stacks, sums[i], errs[i] = p.record(ctx, 0, sideSink{sink.(product.PartSink)}, nil); errs[i] != nil {
					stop()
				}
				p.hottest.Describe(&sums[i], stacks)
				sums[i] = p.further(&sums[i])
			})
		}
	}
	stacks, sum, err := r.part.record(ctx, length, sink, begin)
	end()
	others.Wait()
	sum.Notes = r.notes(&sum)
	r.hottest.Describe(&sum, stacks)
	if begun {
		sum.Parts = sums
	}
	return stacks, sum, cmp.Or(err, errors.Join(errs...))
}

// further is the account of a part that does not lead, without what the first part's account says for all.
func (p *part) further(s *profile.Summary) profile.Summary {
	sum := *s
	sum.Meta.Version = version()
	sum.OwnCPU, sum.Allocated = 0, nil
	sum.Notes = append(sum.Notes, p.ownNotes(&sum)...)
	return sum
}

// sideSink passes on the samples of a further part, and nothing else. The part that leads reports threads and the
// time.
type sideSink struct{ to product.PartSink }

func (s sideSink) Begin(at profile.Instant, m profile.Meta)        { s.to.BeginPart(at, m) }
func (s sideSink) Sample(sample *profile.Sample)                   { s.to.Sample(sample) }
func (s sideSink) ThreadStart(_ profile.Instant, _ profile.Thread) {}
func (s sideSink) ThreadEnd(_ profile.Instant, _ profile.Thread)   {}
func (s sideSink) Tick(_ profile.Instant, _ int)                   {}
