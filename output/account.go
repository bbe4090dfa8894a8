package output

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"goprof/profile"
)

// The account of a recording for people: a few lines on how much was recorded, how reliable it is, what was hottest,
// and what the recording cost. SummaryDetails and the summary's JSON have the rest.

// SummaryText writes the account at the end of a run.
func SummaryText(to io.Writer, s *profile.Summary) error {
	var tried []string
	for _, p := range parts(s) {
		if err := partText(to, p, p != s, &tried); err != nil {
			return err
		}
	}
	return nil
}

func parts(s *profile.Summary) []*profile.Summary {
	all := []*profile.Summary{s}
	for i := range s.Parts {
		all = append(all, &s.Parts[i])
	}
	return all
}

// partText writes the account of one part. Lines that hold for all parts are only in the account of the first part.
func partText(to io.Writer, s *profile.Summary, further bool, tried *[]string) error {
	a := account{s: s, further: further, tried: tried}
	if further || len(s.Parts) > 0 {
		a.line("Part", "%s", CleanName(s.Meta.Part))
	}
	a.amount()
	a.profile()
	a.wakers()
	a.virtual()
	a.leftOut()
	if text := hottestText(s.Hottest, accountWidth, 1); text != "" {
		a.line("Hottest", "%s", text)
	}
	a.allocated()
	a.cost()
	a.notes()
	_, err := io.WriteString(to, a.b.String())
	return err
}

// AccountLine is one line of an account, under its heading.
func AccountLine(heading, text string) string { return fmt.Sprintf("%-10s %s\n", heading, text) }

type account struct {
	s       *profile.Summary
	further bool // one of several parts, and not the first
	b       strings.Builder
	tried   *[]string
}

// try adds the command that cures a problem, unless it is already named.
func (a *account) try(cure string) {
	if cure == "" || slices.Contains(*a.tried, cure) {
		return
	}
	*a.tried = append(*a.tried, cure)
	a.line("", "try: %s", Printable(cure))
}

func (a *account) line(heading, format string, args ...any) {
	a.b.WriteString(AccountLine(heading, fmt.Sprintf(format, args...)))
}

func (a *account) amount() {
	s := a.s
	took := Span(s.Meta.Duration)
	if len(s.Events) > 0 {
		a.events(took)
		return
	}
	if s.Looks != nil {
		if s.Safepoints != nil {
			a.safepoints(took)
			return
		}
		heading := "Time"
		if s.Meta.Mode == profile.ModeOffCPU {
			heading = "Waited"
		}
		if s.Samples == 0 {
			a.line(heading, "nothing seen in %s", took)
			return
		}
		who := Count(s.Threads, "thread")
		if v := s.Virtual; v != nil && v.Threads > 0 {
			who += fmt.Sprintf(" and %s virtual without a carrier", Grouped(int64(math.Round(v.Threads))))
		}
		a.line(heading, "%s in %s of %s%s", Span(s.Looks.Time), took, who, a.states())
		return
	}
	who := ""
	if s.Chosen {
		who = " by the threads that were chosen"
	}
	if s.Threads > 0 {
		who += ", " + Count(s.Threads, "thread")
	}
	a.line("CPU", "used %s in %s (%s)%s", Span(s.Times.Process), took, cpus(s.Times.Process, s.Meta.Duration), who)
}

// states returns the states of the threads, the longest first.
func (a *account) states() string {
	const most = 6
	text := ""
	for i, part := range a.s.States[:min(len(a.s.States), most)] {
		if i > 0 && part.Share < 0.005 {
			break // it would be shown as 0 %
		}
		sep := "  "
		if i == 0 {
			sep = ": "
		}
		text += sep + inWords(part.Share) + " " + CleanName(part.Name)
	}
	return text
}

// profile writes how reliable the recording is.
func (a *account) profile() {
	s := a.s
	if s.Samples == 0 {
		switch {
		case s.Attempted > 0:
			a.line("Profile", "no samples: all %s were lost: %s", Grouped(s.Attempted), profile.Plainly(mostly(s.LostBy)))
		case s.Hindered != nil:
			a.line("Profile", "no samples: no thread was stopped, as it might have been held for too long: %s",
				s.Hindered.Why)
		}
		if why := s.HeldTooLong(); why != "" {
			a.line("", "%s", why)
		}
		if s.Hindered != nil {
			a.try(s.Hindered.Cure)
		}
		return
	}
	what := groupedCount(s.Samples, "sample")
	if w := s.Switches; w != nil {
		waits := s.Samples
		if s.Virtual != nil {
			waits -= s.Virtual.Looks
		}
		what = Grouped(waits) + " waits, each with its own time"
		if w.Thinned > 0 { // there were too many
			what = fmt.Sprintf("%s waits; of those of less than %s some stand for others, so a thread's time may be off by "+
				"some %s", Grouped(waits), Span(w.Limit), Span(w.Limit))
		}
		if w.Missed > 0 {
			what += fmt.Sprintf("; for %s it is not known which threads waited: records were lost", Span(w.Missed))
		}
		if w.Short > 0 {
			what += fmt.Sprintf("; %s shorter ones (%s in all) have no stack", Grouped(w.Short), Span(w.ShortFor))
		}
	} else if s.Safepoints != nil {
		what = Grouped(s.Samples) + " looks"
	} else if s.Times.Process > 0 {
		verb := "cover"
		if s.Samples == 1 {
			verb += "s"
		}
		what += fmt.Sprintf(" %s %s of it", verb, percentOf(s.Times.Sampled, s.Times.Process))
	} else if s.Looks != nil && s.Rate > 0 {
		what += fmt.Sprintf(", %.3g a second of each thread", s.RateReached)
	}
	quality := strings.ToUpper(CleanName(string(cmp.Or(s.Quality, profile.Good))))
	a.line("Profile", "%s: %s; %s", quality, what, lostOrCut(s))
	for i, why := range s.Doubts {
		a.line("", "%s", CleanName(why))
		if i < len(s.Cures) {
			a.try(s.Cures[i])
		}
	}
}

// wakers writes what ended the waits, or why that is not known.
func (a *account) wakers() {
	if len(a.s.Wakers) == 0 {
		return
	}
	var all, known int64
	var texts [2][]string
	for _, w := range a.s.Wakers {
		all += w.Waits
		text := Grouped(w.Waits) + " " + CleanName(w.Name)
		if w.Known {
			known += w.Waits
			texts[0] = append(texts[0], text)
		} else {
			texts[1] = append(texts[1], text)
		}
	}
	a.line("Wakers", "known of %s of %s waits: %s", Grouped(known), Grouped(all),
		cmp.Or(strings.Join(texts[0], ", "), "none"))
	if texts[1] != nil {
		a.line("", "of the others: %s", strings.Join(texts[1], ", "))
	}
}

// lostOrCut returns how many samples are lost, and how many stacks are not whole.
func lostOrCut(s *profile.Summary) string {
	number := func(n int64) string {
		if n == 0 {
			return "none"
		}
		return Grouped(n)
	}
	if s.Lost == 0 && s.Truncated == 0 {
		return "none lost or cut"
	}
	return number(s.Lost) + " lost, " + number(s.Truncated) + " cut"
}

// virtual writes how virtual threads without a carrier were counted.
func (a *account) virtual() {
	v := a.s.Virtual
	if v == nil {
		return
	}
	how := "each time at all of them"
	if v.Error > 0 {
		how = fmt.Sprintf("each time at some, by lot: shares of theirs are right within %.2g points", 100*v.Error)
	}
	if v.Draws == 0 && v.Untracked == 0 {
		how = "so it is not known how many there are"
	}
	a.line("Virtual", "those without a carrier: %s, %s", Count(int(v.Draws), "look"), how)
	if why := mostly(v.Unread); why != "" {
		a.line("", "%s of them showed nothing: %s", Grouped(v.Unread[why]), CleanName(why))
	}
	if v.Untracked > 0 {
		a.line("", "%s more are in no list of the JVM, and are missing: it runs with -Djdk.trackAllThreads=false",
			Grouped(v.Untracked))
	}
}

// leftOut writes how many looks did not become samples because the user did not want them.
func (a *account) leftOut() {
	l := a.s.Looks
	if l == nil {
		return
	}
	if l.Idle > 0 {
		a.line("Left out", "%s of the JVM's own while idle (%s samples): --all-threads shows them",
			Count(l.IdleThreads, "thread"), Grouped(l.Idle))
	}
	if l.Others > 0 {
		a.line("Left out", "%s samples of threads in states that were not asked for", Grouped(l.Others))
	}
}

// accountWidth is the greatest width of the line with the hottest methods, unless it has only one.
const accountWidth = 110

// AtAGlance returns one line of at most columns characters: what most threads did, if that is known, and the hottest
// methods.
func AtAGlance(s *profile.Summary, columns int) (text string) {
	if len(s.States) > 0 {
		text = inWords(s.States[0].Share) + " " + CleanName(s.States[0].Name)
		if utf8.RuneCountInString(text) > columns {
			return ""
		}
		columns -= utf8.RuneCountInString(text) + 3
		text += ":  "
	}
	return strings.TrimSuffix(text+hottestText(s.Hottest, columns, 0), ":  ")
}

// hottestText names as many of the hottest methods as fit into columns, but at least the first few.
func hottestText(parts []profile.Part, columns, few int) (text string) {
	for i := range parts {
		name := ShortName(CleanName(parts[i].Name))
		for j := range parts {
			if i != j && parts[i].Name != parts[j].Name && ShortName(CleanName(parts[j].Name)) == name {
				name = CleanName(parts[i].Name)
			}
		}
		if parts[i].State != "" {
			name += " (" + CleanName(parts[i].State) + ")"
		}
		one := inWords(parts[i].Share) + " " + name
		if i > 0 {
			one = "   " + one
		}
		if i >= few && utf8.RuneCountInString(text)+utf8.RuneCountInString(one) > columns {
			break
		}
		text += one
	}
	return text
}

// allocated writes how much memory threads have allocated, and which threads allocated the most.
func (a *account) allocated() {
	al := a.s.Allocated
	if al == nil || al.Bytes <= 0 || a.s.Meta.Duration <= 0 {
		return
	}
	const most = 3
	counted, known := a.s.Meta.Duration, ""
	if al.Time > 0 && float64(al.Time) < 0.9*float64(counted) {
		counted, known = al.Time, " in the first "+Span(al.Time)
	}
	text := fmt.Sprintf("%s%s, %s a second", size(al.Bytes), known, size(int64(float64(al.Bytes)/counted.Seconds())))
	for i, th := range al.Threads[:min(len(al.Threads), most)] {
		share := float64(th.Bytes) / float64(al.Bytes)
		if i > 0 && share < 0.005 {
			break
		}
		sep := "  "
		if i == 0 {
			sep = ": "
		}
		text += sep + inWords(share) + " " + CleanName(th.Thread)
	}
	if al.Full {
		text += "; some threads were not counted, there are too many"
	}
	a.line("Allocated", "%s", text)
}

// ShortName returns a method's name without its package: Cart.total for com.shop.Cart.total.
func ShortName(name string) string {
	method := strings.LastIndexByte(name, '.')
	if method <= 0 || strings.ContainsAny(name, " :") {
		return name
	}
	if class := strings.LastIndexByte(name[:method], '.'); class >= 0 && class+1 < method {
		if c := name[class+1]; c >= 'A' && c <= 'Z' {
			return name[class+1:]
		}
	}
	return name
}

// longPause is a pause that may disturb a program.
const longPause = 10 * time.Millisecond

// cost writes what the recording has cost the program, and the machine.
func (a *account) cost() {
	s := a.s
	if a.further && s.Pauses.Count == 0 {
		return
	}
	held := "no thread was held"
	if s.Pauses.Count > 0 {
		held = fmt.Sprintf("threads held %s in all, longest %s", Span(s.Pauses.Total), Span(s.Pauses.Max))
	}
	own := "; goprof used " + Span(s.OwnCPU)
	if s.Meta.Duration >= time.Second { // in a shorter recording, goprof's start and end are most of the cost
		own = "; goprof " + percentOf(s.OwnCPU, s.Meta.Duration) + " of a CPU"
	}
	if a.further {
		own = ""
	}
	a.line("Cost", "%s%s", held, own)
	if s.Pauses.Max >= longPause && s.Hindered == nil && s.Looks == nil && !s.NoPerf &&
		s.Meta.Engine != profile.EnginePerf {
		a.try("--engine perf, which holds no thread")
	}
}

// guessedMuch is the share of guessed leaves above which the account mentions them.
const guessedMuch = 0.2

func (a *account) notes() {
	s := a.s
	if late, gap := isBehind(s); late {
		text := fmt.Sprintf("the machine is short of CPU: goprof came too late for %s samples, the longest gap is %s",
			Grouped(s.Skipped), Span(s.Gap))
		if gap {
			text += ", of which nothing is known"
		}
		a.line("Note", "%s", text)
	} else if s.Waiting > s.Attempted/4 && s.Waiting > 0 {
		a.line("Note", "the machine is short of CPU: threads that wanted to run had none at %s of %s tries",
			Grouped(s.Waiting), Grouped(s.Waiting+s.Attempted))
	}
	if n := s.Worth(); n < s.Samples-s.Samples/10 {
		a.line("Note", "%s samples are worth as much as %s that count once each: some looks count for several",
			Grouped(s.Samples), Grouped(n))
	}
	if s.RateLowered > 0 {
		a.line("Note", "--max-overhead lowered the rate from %.4g to %.4g Hz", s.Rate, s.RateLowered)
	}
	many := func(n int64, part float64) bool { return s.Samples > 0 && float64(n) >= part*float64(s.Samples) }
	if many(s.LeafGuessed, guessedMuch) && !many(s.LeafGuessedMost, profile.GuessedMuch) { // otherwise it is a doubt
		a.line("Note", "in %s of the samples it is a guess which inlined method was on top: --leaf sure counts "+
			"the method around it",
			percentOf(s.LeafGuessed, s.Samples))
	}
	for _, n := range s.Notes {
		a.line("Note", "%s", Printable(n.Text))
		a.try(n.Remedy)
	}
}

// mostly returns the key with the largest count. It is empty if there is none.
func mostly(by map[string]int64) string { return append(profile.ByCount(by), "")[0] }
