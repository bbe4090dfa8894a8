package output

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"goprof/profile"
)

// safepoints writes how long the JVM waited for its threads.
func (a *account) safepoints(took string) {
	sp := a.s.Safepoints
	about := ""
	if !sp.Exact {
		about = "about "
	}
	a.line("Safepoints", "%s%s in %s, waited for %s%s: %s of them met by a look, which took %s, the longest %s", about,
		Grouped(sp.Count), took, about, Span(sp.Took), Grouped(sp.Seen), Span(sp.SeenFor), Span(sp.Longest))
	const most = 4
	names := profile.ByCount(sp.Operations)
	text := ""
	for _, name := range names[:min(len(names), most)] {
		text += fmt.Sprintf("  %s %s", Grouped(sp.Operations[name]), CleanName(name))
	}
	if text != "" {
		a.line("Asked for", "%s", text[2:])
	}
	if a.s.Samples > 0 {
		a.line("Late", "%s of %s%s", Span(a.s.Looks.Time), Count(a.s.Threads, "thread"), a.states())
	}
}

// events writes how often the events happened, by the kernel's count, or else by the samples.
func (a *account) events(took string) {
	s := a.s
	who := ""
	if s.Threads > 0 {
		who = " by " + Count(s.Threads, "thread")
	}
	if s.Chosen {
		who += " that were chosen"
	}
	for _, e := range sumsOfEvents(s.Events) {
		a.event(&e, took, who)
		if e.Name == profile.EventAlloc && s.Contents != nil && s.Contents.Buffers > 0 {
			a.contents(s.Contents)
		}
		if e.Name == profile.EventIO && s.IO != nil {
			a.io(s.IO)
		}
		if (e.Name == profile.EventLeak || e.Name == profile.EventMapLeak) && s.Unfreed != nil {
			a.unfreed(s.Unfreed, e.Hits)
		}
	}
}

// unfreed writes how much memory was not freed. An allocation hits two probes, and a call that frees memory hits one.
// docs/evidence/events.md has the cost of a hit.
func (a *account) unfreed(u *profile.Unfreed, calls int64) {
	part := func(p *profile.UnfreedPart) string {
		return fmt.Sprintf("%s in %s allocations (%s)", size(p.Bytes), Grouped(p.Allocations),
			Count(int(p.Samples), "sample"))
	}
	a.line("Not freed", "[old] %s: from the first half of the recording", part(&u.Old))
	a.line("", "[young] %s: from the second half, may still be freed", part(&u.Young))
	a.line("", "%s of freed memory, %s that free; %s of probes, of 1 us each, in some virtual machines 10",
		Count(int(u.Freed), "sample"), Grouped(u.Frees)+" calls", hits(2*calls+u.Frees))
	if u.Met > 0 {
		a.line("", "allocations of the first %s only: more would have cost the program too much (--max-overhead 50)",
			Span(u.Met))
	}
	if u.Followed > 0 {
		a.line("", "followed for the first %s only, and the halves are of that: free cost the program too much, too",
			Span(u.Followed))
	}
	if u.NoStack.Samples > 0 {
		a.line("", "[no stack seen]: the stacks were lost of %s", part(&u.NoStack))
	}
	if u.Full > 0 {
		a.line("", "no room for %s: they are missing here; a larger --every has room", Count(int(u.Full), "sample"))
	}
	if u.Unended > 0 {
		a.line("", "of %s the end was not met, at least: they are missing here", Count(int(u.Unended), "call"))
	}
	if u.Parts > 0 {
		a.line("", "%s unmapped a part of a mapping: all of it counts as not freed", Count(int(u.Parts), "call"))
	}
}

// contents writes how goprof knows the bytes of each class.
func (a *account) contents(c *profile.Contents) {
	a.line("", "bytes by class are those of %s that were read, %s of %s", Count(int(c.Buffers), "buffer"), size(c.Bytes),
		size(c.Of))
	if c.InStep {
		a.line("", "the ends of buffers alone would be %.0f %% off: the program walks in step with them", 100*c.Apart)
	}
	if c.Unmet > 0 {
		a.line("", "[no stack seen]: no sample met the classes there, %d with %s", c.Unmet, size(c.UnmetBytes))
	}
	for _, why := range slices.Sorted(maps.Keys(c.Unread)) {
		a.line("", "%s not read: %s", Count(int(c.Unread[why]), "buffer"), CleanName(why))
	}
}

func (a *account) event(e *profile.EventCount, took, who string) {
	name := CleanName(e.Name)
	switch {
	case e.Hits > 0 && e.Unit == profile.Bytes:
		a.line("Event", "%s: %s, counted in %s in %s; samples%s", name, size(e.Amount), hits(e.Hits), took, who)
	case e.Hits > 0 && e.Unit == profile.WallTime:
		a.line("Event", "%s: %s, counted in %s in %s; samples%s", name, Span(time.Duration(e.Amount)),
			calls(e.Hits), took, who)
	case e.Hits > 0:
		a.line("Event", "%s: %s in %s; samples%s", name, hits(e.Hits), took, who)
	case e.Stood > 0:
		a.line("Event", "%s: samples stand for %s in %s%s", name, hits(e.Stood), took, who)
	default:
		a.line("Event", "%s: none in %s", name, took)
	}
	if e.Interval > 1 {
		each := Grouped(e.Interval) + " of them"
		if e.Unit == profile.Bytes {
			each = size(e.Interval)
		} else if e.Unit == profile.WallTime {
			each = Span(time.Duration(e.Interval))
		}
		a.line("", "a sample stands for %s: what came less often, or was smaller, is there by chance", each)
	}
	if e.Missed > 0 {
		a.line("", "for %s samples the kernel had no room: they are not among these", Grouped(e.Missed))
	}
}

func hits(n int64) string { return groupedCount(n, "hit") }

// sumsOfEvents returns the events of a recording, with one sum for all functions of an event.
func sumsOfEvents(list []profile.EventCount) (sums []profile.EventCount) {
	for _, e := range list {
		i := slices.IndexFunc(sums, func(s profile.EventCount) bool { return s.Name == e.Name })
		if i < 0 {
			sums = append(sums, e)
			continue
		}
		all := &sums[i]
		all.Hits, all.Amount, all.Missed = all.Hits+e.Hits, all.Amount+e.Amount, all.Missed+e.Missed
		all.Taken, all.Stood = all.Taken+e.Taken, all.Stood+e.Stood
		all.Interval = max(all.Interval, e.Interval)
	}
	return sums
}
