//go:build linux

package recorder

import (
	"errors"
	"fmt"
	"io"

	"goprof/cmd/goprof/exit"
	"goprof/output"
	"goprof/profile"
	"goprof/sampler/offcpu"
	"goprof/sampler/ring"
	"goprof/session"
	"goprof/vmstructs"
)

// choose chooses the engine for one JVM, and shows the user notes about the choice.
func (p *part) choose(talk io.Writer) error {
	p.engine = session.PtraceEngine
	switch p.want.Mode {
	case session.WaitingMode:
		return p.chooseOffCPU(talk)
	case session.TTSPMode:
		return p.prepareSafepoints()
	case session.WallMode:
		return nil
	}
	if len(p.want.Events) > 0 {
		p.engine = session.PerfEngine
		return nil
	}
	c, err := exit.Host().ChooseEngine(p.want.Engine, p.pid, 100*p.want.MaxOverhead)
	if err != nil {
		return exit.CannotLook(p.pid, err)
	}
	p.engine = c.Engine
	if c.Note != "" && p.o.ExplainEngine && !p.o.Quiet {
		exit.TellNotes(talk, []profile.Note{{Name: "engine", Text: c.Note, Remedy: c.Remedy}})
	}
	return nil
}

// chooseOffCPU finds out whether context switches can show waits.
func (p *part) chooseOffCPU(talk io.Writer) error {
	if p.want.Wakers {
		return p.tryWakers()
	}
	if p.want.Engine == session.PtraceEngine {
		return nil
	}
	err := offcpu.Try(p.pid)
	switch {
	case err == nil:
		p.engine = session.PerfEngine
	case p.want.Engine == session.PerfEngine:
		c := exit.Host().Explain(p.pid, err)
		return &exit.Error{Code: exit.NoEvent, What: "cannot take waits from context switches",
			Why:    "the kernel does not report them to goprof: " + c.Why,
			Remedy: c.Remedy + ", or --engine ptrace, which looks 20 times a second", Err: err}
	case !p.o.Quiet:
		c := exit.Host().Explain(p.pid, err)
		exit.TellNotes(talk, []profile.Note{{Name: "off-cpu", Remedy: c.Remedy,
			Text: "the kernel does not report context switches to goprof: threads are looked at now and then instead (" +
				c.Why + ")"}})
	}
	return nil
}

// tryWakers returns an error if the kernel cannot record what ends waits.
func (p *part) tryWakers() error {
	err := offcpu.Try(p.pid)
	if err == nil {
		err = session.TryWakers(p.pid)
	}
	if err == nil {
		p.engine = session.PerfEngine
		return nil
	}
	flag := "--wakers"
	if p.want.Chain > 0 {
		flag = "--chain"
	}
	c := exit.Host().Explain(p.pid, err)
	return &exit.Error{Code: exit.NoEvent, What: "cannot find out what ends waits", Why: c.Why,
		Remedy: c.Remedy + ", or without " + flag, Err: err}
}

// prepareSafepoints returns an error if the JVM's safepoints cannot be seen.
func (p *part) prepareSafepoints() error {
	err := p.session.WatchSafepoints()
	if errors.Is(err, vmstructs.ErrNoSafepoints) {
		return &exit.Error{Code: exit.NoEvent, What: "cannot watch safepoints", Err: err,
			Why:    "this libjvm.so has no symbols, and the JVM keeps no counters (-XX:-UsePerfData)",
			Remedy: "start the JVM without -XX:-UsePerfData"}
	}
	if err != nil {
		return exit.CannotLook(p.pid, err)
	}
	return nil
}

// findEvent finds in the JVM the events to sample.
func (p *part) findEvent() error {
	var found []*session.EventPlan
	for _, e := range p.want.Events {
		plan, err := p.session.FindEvent(e.Name, e.Every)
		if err != nil {
			for _, plan := range found {
				plan.Close()
			}
			return eventFailed(p.pid, err)
		}
		if p.want.Min != UsualMin {
			plan.SetMin(p.want.Min)
		}
		found = append(found, plan)
	}
	if len(found) > 0 {
		p.event = session.JoinEvents(found)
	}
	return nil
}

// eventFailed returns why an event is not available.
func eventFailed(pid int, err error) error {
	var e *session.EventError
	if !errors.As(err, &e) {
		return exit.CannotLook(pid, err)
	}
	exit.Host().ExplainEvent(pid, e)
	return &exit.Error{Code: exit.NoEvent, What: "cannot take samples of " + output.CleanName(e.Name),
		Why: output.Printable(e.Why), Remedy: e.Remedy, Err: err}
}

// notes returns the notes on a recording besides its figures.
func (r *Recorder) notes(sum *profile.Summary) []profile.Note {
	return append(append(sum.Notes, exit.Host().Notes(r.session)...), r.ownNotes(sum)...)
}

// ownNotes returns the notes on one part.
func (p *part) ownNotes(sum *profile.Summary) (notes []profile.Note) {
	if p.event != nil && p.event.Note != "" {
		notes = append(notes, profile.Note{Name: "event", Text: p.event.Note})
	}
	if cut := sum.TruncatedBy[profile.StackCut.String()]; cut > 0 && p.engine == session.PerfEngine && p.event == nil {
		notes = append(notes, p.stackNote(cut, sum.Samples))
	}
	return notes
}

// stackNote reports stacks that were too long for perf_event's copy.
func (p *part) stackNote(cut, samples int64) profile.Note {
	most, by := ring.MostCopied(), ""
	if p.want.Mode == session.WaitingMode {
		most, by = min(most, offcpu.SwitchStack), "--event off-cpu " // looks, 20 per second
	}
	return profile.Note{Name: "stacks-cut",
		Text: fmt.Sprintf("%d of %d stacks end where perf_event stops to copy: after %d KB, or at memory that is not present",
			cut, samples, (most+1023)>>10),
		Remedy: fmt.Sprintf("goprof record %s--engine ptrace --pid %d", by, p.pid)}
}
