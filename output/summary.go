package output

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"goprof/output/format"
	"goprof/profile"
)

// SummaryPath is where the summary of a collapsed file is looked for: out.summary.json beside out.collapsed. Other
// names keep their extension, out.txt.summary.json, so that no two recordings share a summary.
func SummaryPath(collapsed string) string {
	return strings.TrimSuffix(collapsed, format.Collapsed.Extension()) + ".summary.json"
}

// maxSummary bounds what ReadSummary reads.
const maxSummary = 1 << 20

// WriteSummary writes the account of a recording as JSON. The field names are those of
// profile.Summary and stay as they are; times are nanoseconds, rates are in Hz.
func WriteSummary(to io.Writer, s *profile.Summary) error { return WriteJSON(to, s) }

// ReadSummary reads what WriteSummary wrote.
func ReadSummary(from io.Reader) (*profile.Summary, error) {
	s := new(profile.Summary)
	if err := json.NewDecoder(io.LimitReader(from, maxSummary)).Decode(s); err != nil {
		return nil, fmt.Errorf("not a summary of goprof: %w", err)
	}
	return s, nil
}

// SummaryText writes the account that stands at the end of a run.
func SummaryText(to io.Writer, s *profile.Summary) error {
	var b strings.Builder
	quality(&b, s)
	fmt.Fprintf(&b, "samples    %d of %d looks", s.Samples, s.Attempted)
	if s.Threads > 0 {
		fmt.Fprintf(&b, ", %s", count(s.Threads, "thread"))
	}
	fmt.Fprintf(&b, ", in %s\n", Round(s.Meta.Duration))
	fmt.Fprintf(&b, "rate       %.4g Hz reached, %.4g Hz asked\n", s.RateReached, s.Rate)
	if s.RateLowered > 0 {
		fmt.Fprintf(&b, "           lowered to %.4g Hz: pauses cost more than they may; early samples count for more\n", s.RateLowered)
	}
	behind(&b, s)
	reasons(&b, "truncated", s.Truncated, s.Attempted, s.TruncatedBy)
	reasons(&b, "lost", s.Lost, s.Attempted, s.LostBy)
	if s.Asleep > 0 {
		fmt.Fprintf(&b, "asleep     %d samples%s of threads that entered a system call in the microseconds before they stopped\n",
			s.Asleep, share(s.Asleep, s.Samples, " (%s)"))
	}
	if unsure := s.LeafLikely + s.LeafGuessed; unsure > 0 {
		fmt.Fprintf(&b, "leaves     %d certain%s", s.Samples-unsure, share(s.Samples-unsure, s.Samples, " (%s)"))
		fmt.Fprintf(&b, ", %d likely%s", s.LeafLikely, share(s.LeafLikely, s.Samples, " (%s)"))
		fmt.Fprintf(&b, ", %d guessed%s: which inlined method was running\n",
			s.LeafGuessed, share(s.LeafGuessed, s.Samples, " (%s)"))
	}
	if s.Waiting > 0 {
		fmt.Fprintf(&b, "waiting    %d more looks met threads that had no CPU: no samples, and made up for\n", s.Waiting)
	}
	if t := &s.Times; t.Process > 0 {
		fmt.Fprintf(&b, "cpu time   %s used", Round(t.Process))
		fmt.Fprintf(&b, "%s", share(int64(t.Sampled), int64(t.Process), ": %s sampled"))
		fmt.Fprintf(&b, "%s", share(int64(t.NotSampled), int64(t.Process), ", %s not sampled"))
		fmt.Fprintf(&b, "%s\n", share(int64(t.Exited), int64(t.Process), ", %s exited threads"))
	}
	if l := s.Looks; l != nil {
		fmt.Fprintf(&b, "looks      %d at threads that had not moved, %d without a stop, %d by a stop", l.Repeated, l.Unstopped, l.Stopped)
		if l.AtRest > 0 {
			fmt.Fprintf(&b, " (%d of them at rest)", l.AtRest)
		}
		if l.Running > 0 {
			fmt.Fprintf(&b, ", %d at threads that ran and were left alone", l.Running)
		}
		if l.Others > 0 {
			fmt.Fprintf(&b, "\nleft out   %d looks at threads in a state that was not asked for: no samples", l.Others)
		}
		fmt.Fprintf(&b, "\nvoid       %d looks: the thread ran meanwhile; repeated, those in vain are lost\n", l.Moved)
		if l.Asleep > 0 {
			fmt.Fprintf(&b, "asleep     %d threads had gone to sleep in the microseconds before they stopped\n", l.Asleep)
		}
	}
	if s.Overflow > 0 {
		fmt.Fprintf(&b, "not kept   callees of %d samples: the profile is full\n", s.Overflow)
	}
	if s.Meta.Engine == profile.EnginePerf {
		b.WriteString("pauses     none: the kernel took the samples (perf_event)\n")
	} else if s.Pauses.Count == 0 {
		b.WriteString("pauses     none\n")
	} else {
		fmt.Fprintf(&b, "pauses     p50 %s, p99 %s, max %s, %s together",
			Round(s.Pauses.P50), Round(s.Pauses.P99), Round(s.Pauses.Max), Round(s.Pauses.Total))
		if s.Pauses.Bound > 0 {
			fmt.Fprintf(&b, "; bound %s", Round(s.Pauses.Bound))
		}
		b.WriteByte('\n')
	}
	if s.Silent > 0 {
		fmt.Fprintf(&b, "silent     %s, whose memory did not answer: let go within the bound, and left alone\n",
			count(s.Silent, "thread"))
	}
	fmt.Fprintf(&b, "goprof     %s of CPU%s\n", Round(s.OwnCPU), share(int64(s.OwnCPU), int64(s.Meta.Duration), " (%s of one)"))
	_, err := io.WriteString(to, b.String())
	return err
}

// quality says how far the shares can be believed, where that is not as far as can be.
func quality(b *strings.Builder, s *profile.Summary) {
	if s.Quality == "" || s.Quality == profile.Good {
		return
	}
	what := "shares may be off by some percent"
	if s.Quality == profile.Poor {
		what = "shares may be off by a tenth or more"
	}
	fmt.Fprintf(b, "quality    %s: %s\n", strings.ToUpper(CleanName(string(s.Quality))), what)
	for _, why := range s.Doubts {
		fmt.Fprintf(b, "           %s\n", CleanName(why))
	}
}

// behind says that goprof did not get to sample when it meant to: it was stopped, or had no CPU. Less than a tenth of
// all shows in the rate alone.
func behind(b *strings.Builder, s *profile.Summary) {
	long := time.Second + 2*s.Meta.Interval
	want := s.Rate
	if s.RateLowered > 0 {
		want = s.RateLowered
	}
	if s.Skipped == 0 || s.RateReached > 0.9*want && s.Gap < long {
		return
	}
	fmt.Fprintf(b, "behind     %s skipped and not made up for, the longest gap %s", count(int(s.Skipped), "tick"), Round(s.Gap))
	if s.Gap >= long {
		fmt.Fprintf(b, ": its CPU time is not sampled")
	}
	b.WriteByte('\n')
}

func reasons(b *strings.Builder, what string, n, of int64, by map[string]int64) {
	fmt.Fprintf(b, "%-10s %d%s", what, n, share(n, of, " (%s)"))
	names := slices.SortedFunc(maps.Keys(by), func(x, y string) int {
		return cmp.Or(cmp.Compare(by[y], by[x]), strings.Compare(x, y))
	})
	sep := ": "
	for _, name := range names {
		fmt.Fprintf(b, "%s%d %s", sep, by[name], CleanName(name))
		sep = ", "
	}
	b.WriteByte('\n')
}

func share(n, of int64, format string) string {
	if of <= 0 || n == 0 {
		return ""
	}
	return fmt.Sprintf(format, Percent(n, of))
}

// Percent is a share with as many digits as tell something.
func Percent(n, of int64) string {
	if of == 0 {
		return "0%"
	}
	p := float64(n) / float64(of) * 100
	if n != 0 && p < 0.1 {
		return fmt.Sprintf("%.3f%%", p)
	}
	return fmt.Sprintf("%.1f%%", p)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Round leaves three digits or so of a duration.
func Round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/1000 >= unit { // not d >= 1000*unit, which may be too large for a number
		unit *= 10
	}
	return d.Round(unit)
}
