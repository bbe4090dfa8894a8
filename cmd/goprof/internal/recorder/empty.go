//go:build linux

package recorder

import (
	"fmt"
	"time"

	"goprof/cmd/goprof/exit"
	"goprof/diagnose"
	"goprof/output"
	"goprof/process"
	"goprof/profile"
)

// noSamples returns an error that says why a recording is empty.
func (r *Recorder) noSamples(res *result) error {
	sum := &res.summary
	still, letGo := diagnose.StandsStill(r.session)
	e := &exit.Error{Code: exit.NoSamples, What: fmt.Sprintf("no samples of process %d", r.pid)}
	e.Why, e.Remedy = r.nothingSeen(res)
	switch {
	case r.session.Process.Alive() != nil:
		c := exit.Host().Explain(r.pid, r.session.Process.Alive())
		e.Code, e.Why, e.Remedy = exit.TargetGone, c.Why+" before it had used enough CPU time", c.Remedy
	case still != "":
		e.Why, e.Remedy = still, letGo
	case sum.LostBy[profile.AlreadyTraced.String()] > 0:
		return exit.CannotLook(r.pid, diagnose.ErrTraced)
	case sum.LostBy[profile.NotPermitted.String()] > 0:
		return exit.CannotLook(r.pid, process.ErrNotPermitted)
	case sum.Looks != nil && sum.Looks.Idle > 0:
		e.Why = "only the JVM's own threads were there, and these were idle"
		e.Remedy = "--all-threads shows them"
	case sum.Looks != nil && sum.Looks.Others > 0:
		e.Why = "no thread was seen in a state that was asked for"
		e.Remedy = fmt.Sprintf("goprof dump --pid %d shows the threads' states", r.pid)
	case sum.Attempted > 0:
		e.Why = fmt.Sprintf("all %d tries to take one failed: see the account above", sum.Attempted)
		e.Remedy = fmt.Sprintf("goprof doctor --pid %d", r.pid)
	case r.session.Held():
		c := exit.Host().Explain(r.pid, diagnose.ErrTraced)
		e.Why, e.Remedy = "a debugger holds its threads: "+c.Why, c.Remedy
	case r.event != nil:
		e.Why, e.Remedy = r.nothingHappened(sum)
	case r.want.Wants != nil:
		e.Why = "none of the threads that --thread and --exclude-thread choose used as much CPU time as lies " +
			"between two samples"
		if sum.Looks != nil {
			e.Why = "none of the threads that --thread and --exclude-thread choose was there"
		}
		e.Remedy = fmt.Sprintf("goprof dump --pid %d shows the threads' names", r.pid)
	}
	if sum.Hindered != nil && e.Remedy == sum.Hindered.Cure && !r.o.Quiet {
		e.Remedy = "" // the account shows the remedy
	}
	return e
}

// nothingHappened says why there is no sample of an event.
func (r *Recorder) nothingHappened(sum *profile.Summary) (why, remedy string) {
	took := output.Span(sum.Meta.Duration)
	hits := int64(0)
	for _, e := range sum.Events {
		hits += e.Hits
	}
	if u := sum.Unfreed; u != nil && u.Freed > 0 && u.Full == 0 {
		return fmt.Sprintf("all memory that was sampled was freed: %d allocations of %d in %s", u.Freed, hits, took),
			"-d longer, or --every smaller: a leak that is rare is sampled by chance"
	}
	if hits > 0 {
		return fmt.Sprintf("%s was met %d times in %s, and none of these became a sample", r.event.Name, hits, took),
			"-d longer, or --every smaller"
	}
	return fmt.Sprintf("%s: none in %s", output.CleanName(r.event.Name), took), "-d longer"
}

// nothingSeen says why no thread was sampled, by the CPU time of the process. A process is idle only if it used none.
func (r *Recorder) nothingSeen(res *result) (why, remedy string) {
	took := output.Span(res.summary.Meta.Duration)
	each := r.want.Interval
	higher := fmt.Sprintf("goprof record --pid %d with -d longer, or -r higher", r.pid)
	switch {
	case res.summary.Safepoints != nil:
		return "no safepoint was waited for long enough to be met by a look", "record for longer: -d 5m"
	case res.summary.Looks != nil:
		return "none of its threads was in a state that this mode looks at",
			fmt.Sprintf("goprof dump --pid %d shows the threads' states", r.pid)
	case res.used == 0:
		return "all its threads were idle: it used no CPU time in " + took,
			fmt.Sprintf("goprof dump --pid %d shows what they wait for", r.pid)
	case res.used < each:
		return fmt.Sprintf("it used only %s of CPU time in %s, and a sample stands for %s", output.Span(res.used),
				took, output.Span(each)),
			fmt.Sprintf("goprof dump --pid %d shows what its threads wait for; %s", r.pid, higher)
	case res.summary.Hindered != nil:
		return "no thread was stopped, as it might have been held for too long: " + res.summary.Hindered.Why,
			res.summary.Hindered.Cure
	case res.used < fewSamples*each:
		return fmt.Sprintf("it used %s of CPU time in %s, enough for some samples, but goprof never met it on a "+
			"CPU", output.Span(res.used), took), higher
	}
	return fmt.Sprintf("it used %s of CPU time in %s, but goprof never met it on a CPU: the machine is short of "+
			"CPU, or goprof lacks "+
			"real-time priority", output.Span(res.used), took), "sudo " + exit.CommandLine([]string{"goprof", "record",
			"--pid", fmt.Sprint(r.pid)}) + ", with -d longer"
}

// fewSamples is the number of samples that may be missing by chance.
const fewSamples time.Duration = 8
