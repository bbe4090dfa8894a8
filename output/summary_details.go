package output

import (
	"fmt"
	"io"
	"strings"
	"time"

	"goprof/profile"
)

// SummaryDetails writes all facts about a recording. docs/glossary.md explains the terms.
func SummaryDetails(to io.Writer, s *profile.Summary) error {
	for _, p := range parts(s) {
		if err := partDetails(to, p); err != nil {
			return err
		}
	}
	return nil
}

func partDetails(to io.Writer, s *profile.Summary) error {
	var b strings.Builder
	if s.Meta.Part != "" {
		fmt.Fprintf(&b, "part       %s\n", CleanName(s.Meta.Part))
	}
	fmt.Fprintf(&b, "samples    %d of %d looks", s.Samples, s.Attempted)
	if s.Threads > 0 {
		fmt.Fprintf(&b, ", %s", Count(s.Threads, "thread"))
	}
	fmt.Fprintf(&b, ", in %s\n", Round(s.Meta.Duration))
	if len(s.Events) == 0 && !s.BySwitches() {
		fmt.Fprintf(&b, "rate       %.4g Hz reached, %.4g Hz asked\n", s.RateReached, s.Rate)
	}
	for _, e := range s.Events {
		fmt.Fprintf(&b, "event      %s: %d hits, %s %d; %d samples stand for %d, %d missed, interval %d\n",
			CleanName(e.Name), e.Hits, e.Unit, e.Amount, e.Taken, e.Stood, e.Missed, e.Interval)
	}
	if s.RateLowered > 0 {
		fmt.Fprintf(&b, "           lowered to %.4g Hz: pauses cost more than they may; early samples count for "+
			"more\n", s.RateLowered)
	}
	behind(&b, s)
	reasons(&b, "truncated", s.Truncated, s.Attempted, s.TruncatedBy)
	reasons(&b, "lost", s.Lost, s.Attempted, s.LostBy)
	if s.Asleep > 0 {
		fmt.Fprintf(&b, "asleep     %d samples%s of threads that entered a system call in the microseconds before "+
			"they stopped\n",
			s.Asleep, share(s.Asleep, s.Samples, " (%s)"))
	}
	if unsure := s.LeafLikely + s.LeafGuessed; unsure > 0 {
		fmt.Fprintf(&b, "leaves     %d certain%s", s.Samples-unsure, share(s.Samples-unsure, s.Samples, " (%s)"))
		fmt.Fprintf(&b, ", %d likely%s", s.LeafLikely, share(s.LeafLikely, s.Samples, " (%s)"))
		fmt.Fprintf(&b, ", %d guessed%s: which inlined method was running\n",
			s.LeafGuessed, share(s.LeafGuessed, s.Samples, " (%s)"))
	}
	if s.Waiting > 0 {
		fmt.Fprintf(&b, "waiting    the machine was busy: %s found a thread queued for a CPU; goprof looked again later\n",
			Count(int(s.Waiting), "look"))
	}
	if t := &s.Times; t.Process > 0 {
		fmt.Fprintf(&b, "cpu time   %s used", Round(t.Process))
		fmt.Fprintf(&b, "%s", share(int64(t.Sampled), int64(t.Process), ": %s sampled"))
		fmt.Fprintf(&b, "%s", share(int64(t.NotSampled), int64(t.Process), ", %s not sampled"))
		fmt.Fprintf(&b, "%s\n", share(int64(t.Exited), int64(t.Process), ", %s exited threads"))
	}
	looks(&b, s)
	if v := s.Virtual; v != nil {
		fmt.Fprintf(&b, "virtual    %.1f threads without a carrier on average, at most %d; %d looks in %d draws, %s of CPU\n",
			v.Threads, v.Most, v.Looks, v.Draws, Round(v.CPU))
		unread := int64(0)
		for _, n := range v.Unread {
			unread += n
		}
		reasons(&b, "unread", unread, v.Looks+unread, v.Unread)
	}
	if s.Overflow > 0 {
		fmt.Fprintf(&b, "not kept   callees of %d samples: the profile is full\n", s.Overflow)
	}
	if s.Links != nil {
		fmt.Fprintf(&b, "links      %s\n", s.Links)
	}
	pauses(&b, s)
	if s.Silent > 0 {
		fmt.Fprintf(&b, "silent     %s, whose memory did not answer: let go within the bound, and left alone\n",
			Count(s.Silent, "thread"))
	}
	for _, n := range s.Notes {
		fmt.Fprintf(&b, "note       %s: %s\n", CleanName(n.Name), Printable(n.Text))
	}
	fmt.Fprintf(&b, "goprof     %s of CPU%s\n", Round(s.OwnCPU), share(int64(s.OwnCPU), int64(s.Meta.Duration),
		" (%s of one)"))
	_, err := io.WriteString(to, b.String())
	return err
}

// behind writes whether goprof failed to sample in time, because it was stopped or had no CPU.
func behind(b *strings.Builder, s *profile.Summary) {
	late, gap := isBehind(s)
	if !late {
		return
	}
	fmt.Fprintf(b, "behind     %s skipped and not made up for, the longest gap %s", Count(int(s.Skipped), "tick"),
		Round(s.Gap))
	if gap {
		fmt.Fprintf(b, ": its CPU time is not sampled")
	}
	b.WriteByte('\n')
}

// looks writes the numbers of looks of a wall-clock recording by their outcome.
func looks(b *strings.Builder, s *profile.Summary) {
	l := s.Looks
	if l == nil {
		return
	}
	fmt.Fprintf(b, "looks      %d at threads that had not moved, %d without a stop, %d by a stop",
		l.Repeated, l.Unstopped, l.Stopped)
	if l.AtRest > 0 {
		fmt.Fprintf(b, " (%d of them at rest)", l.AtRest)
	}
	if l.Running > 0 {
		fmt.Fprintf(b, ", %d at threads that ran and were left alone", l.Running)
	}
	if l.Others > 0 {
		fmt.Fprintf(b, "\nleft out   %d looks at threads in a state that was not asked for: no samples", l.Others)
	}
	fmt.Fprintf(b, "\nvoid       %d looks: the thread ran meanwhile; repeated, those in vain are lost\n", l.Moved)
	if l.Asleep > 0 {
		fmt.Fprintf(b, "asleep     %d threads had gone to sleep in the microseconds before they stopped\n", l.Asleep)
	}
	if l.Idle > 0 {
		fmt.Fprintf(b, "idle       %d looks at %s of the JVM's own that had nothing to do: no samples\n", l.Idle,
			Count(l.IdleThreads, "thread"))
	}
}

func pauses(b *strings.Builder, s *profile.Summary) {
	if s.Meta.Engine == profile.EnginePerf {
		b.WriteString("pauses     none: the kernel took the samples (perf_event)\n")
	} else if s.Pauses.Count == 0 {
		b.WriteString("pauses     none\n")
	} else {
		fmt.Fprintf(b, "pauses     p50 %s, p99 %s, max %s, %s together",
			Round(s.Pauses.P50), Round(s.Pauses.P99), Round(s.Pauses.Max), Round(s.Pauses.Total))
		if s.Pauses.Bound > 0 {
			fmt.Fprintf(b, "; bound %s", Round(s.Pauses.Bound))
		}
		b.WriteByte('\n')
	}
}

// isBehind reports whether goprof skipped many ticks, and whether there is a gap among them. If less than a tenth of
// all ticks is skipped, the rate alone shows it.
func isBehind(s *profile.Summary) (late, gap bool) {
	long := time.Second + 2*s.Meta.Interval
	want := s.Rate
	if s.RateLowered > 0 {
		want = s.RateLowered
	}
	gap = s.Gap >= long
	return s.Skipped != 0 && (s.RateReached <= 0.9*want || gap), gap
}

func reasons(b *strings.Builder, what string, n, of int64, by map[string]int64) {
	fmt.Fprintf(b, "%-10s %d%s", what, n, share(n, of, " (%s)"))
	sep := ": "
	for _, name := range profile.ByCount(by) {
		fmt.Fprintf(b, "%s%d %s", sep, by[name], CleanName(name))
		sep = ", "
	}
	b.WriteByte('\n')
}
