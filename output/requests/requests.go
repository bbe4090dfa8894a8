// Package requests finds the requests of a program in the samples of a wall-clock recording, and the states in which
// each request spent its time.
//
// A request is the work of threads for one trace (profile.Link), or the time for which one thread had a frame on its
// stack. Samples are looks, and nothing is known about a thread between two looks. So the times of a request may be
// wrong by two intervals, and short requests are seen only by chance.
package requests

import (
	"cmp"
	"maps"
	"math"
	"regexp"
	"slices"
	"sort"
	"time"

	"goprof/output"
	"goprof/profile"
	"goprof/profile/naming"
)

// mostLooks bounds the kept looks, of 32 bytes each.
const mostLooks = 4 << 20

// look is a look at a thread that worked for a request, or may have.
type look struct {
	at, span int64 // ns
	part     int32 // index in Gatherer.parts
	link     int32 // index in Gatherer.links; by method, 0: the method is on the stack; -1: neither
	waits    bool  // possibly for a lock
	socket   bool  // it waited for a socket
	drawn    bool  // of a virtual thread without a carrier
}

// Gatherer takes the samples of a recording, in any order.
type Gatherer struct {
	method  *regexp.Regexp // nil: requests are traces
	threads map[profile.Thread][]look
	parts   numbering[string]
	links   numbering[profile.Link]
	holds   map[who][]Hold   // by the waiting thread
	woken   []Hold           // from samples with wakers
	locked  bool             // some samples waited for a lock
	wakers  bool             // some of these show what woke them
	byWho   map[who][]look   // by thread
	names   map[int64]string // of virtual threads
	looks   int
	draws   map[int64]bool // times at which virtual threads without a carrier were drawn
	// counted is the number of looks that the samples stand for, and stoodFor is their time.
	counted  int64
	stoodFor time.Duration
	// Left is the number of samples without room. Timeless is the number of samples without a time.
	Left, Timeless int64
}

// numbering gives each value a number.
type numbering[T comparable] struct {
	all    []T
	number map[T]int32
}

func (t *numbering[T]) of(v T) int32 {
	n, known := t.number[v]
	if !known {
		if t.number == nil {
			t.number = map[T]int32{}
		}
		n = int32(len(t.all))
		t.number[v], t.all = n, append(t.all, v)
	}
	return n
}

// New makes a Gatherer. A request is a trace. With method, it is the time for which a thread has a frame that matches
// method.
func New(method *regexp.Regexp) *Gatherer {
	return &Gatherer{method: method, threads: map[profile.Thread][]look{}, names: map[int64]string{},
		draws: map[int64]bool{}}
}

// Sample takes a sample. It keeps only names from it.
func (g *Gatherer) Sample(s *profile.Sample) {
	switch {
	case s.At.Wall == 0 || s.TimeOnly || !s.Wall || s.Stack == nil:
		g.Timeless++
		return
	case g.looks == mostLooks:
		g.Left++
		return
	}
	g.looks++
	g.counted += s.Looks()
	g.stoodFor += s.Span
	l := look{at: s.At.Wall, span: int64(s.Span), part: g.parts.of(partOf(s)), link: -1,
		waits:  s.State == profile.Blocked || s.State == profile.Parked || s.State == profile.Waiting,
		socket: s.State == profile.Socket}
	switch {
	case g.method != nil && g.has(s.Stack):
		l.link = g.links.of(profile.Link{})
	case g.method == nil && s.Link.Known():
		l.link = g.links.of(profile.Link{Trace: s.Link.Trace})
		if s.Link.Trace == [16]byte{} {
			l.link = g.links.of(s.Link)
		}
	}
	g.wake(s)
	t := s.Thread
	if l.drawn = t.Virtual && t.TID == 0; l.drawn {
		g.draws[l.at] = true
	}
	if t.Virtual && t.JavaID != 0 { // one thread, on any carrier
		if t.JavaName != "" {
			g.names[t.JavaID] = t.JavaName
		}
		t = profile.Thread{Virtual: true, JavaID: t.JavaID}
	}
	g.threads[t] = append(g.threads[t], l)
}

func (g *Gatherer) has(s *profile.Stack) bool {
	return slices.ContainsFunc(s.Frames, func(f profile.Frame) bool {
		return f.Func != nil && g.method.MatchString(f.Func.Name)
	})
}

// Interval is the mean time between two looks at a thread. It is longer than the user asked for if the machine is busy,
// or if looks would cost too much.
func (g *Gatherer) Interval() time.Duration { return g.stoodFor / time.Duration(max(g.counted, 1)) }

// partOf describes in a few words what a thread did: the method, and the thread's state.
func partOf(s *profile.Sample) string {
	state, wait := s.State.String(), *s.Stack
	if at := wait.StateAt(); at >= 0 && wait.Frames[at].Func != nil {
		wait.Frames = wait.Frames[at:] // frames of a waker are above
		state = stateOf(&wait.Frames[0])
	}
	place := naming.TopJava(&wait, s.State != profile.Running)
	return cmp.Or(output.ShortName(output.CleanName(place)), "native code") + " (" + state + ")"
}

type Request struct {
	Trace   string // "" for a request by a method
	Thread  string // the first thread with it
	Threads int    // number of threads with it
	From    time.Time
	For     time.Duration
	Parts   []Part // sums over all threads, the largest first
	// Unseen is the part of For in which no thread worked for the request.
	Unseen time.Duration
	// Cut: the request was already there at the first look, or still there at the last one. So it may have been longer.
	Cut bool
}

// Part is the time that a request spent in one method and state.
type Part struct {
	What    string
	For     time.Duration
	Holders []Holder // known holders of the lock that it waited for, or its peers; the most frequent first
}

// Requests returns all requests, the longest first.
func (g *Gatherer) Requests() []Request {
	if len(g.woken) > 0 {
		sort.Slice(g.woken, func(i, j int) bool { return g.woken[i].At.Before(g.woken[j].At) })
		g.Holds(g.woken)
	}
	first, last := g.seen()
	found := map[int32]*building{}
	var all []*building
	g.byWho = map[who][]look{}
	draws := slices.Sorted(maps.Keys(g.draws))
	for thread, looks := range g.threads {
		sort.Slice(looks, func(i, j int) bool { return looks[i].at < looks[j].at })
		for i := range looks {
			// A look at a drawn thread also stands for other threads (session/unmounted.go). For its own time, it only stands
			// for the time since the previous draw.
			if at, _ := slices.BinarySearch(draws, looks[i].at); looks[i].drawn && at > 0 {
				looks[i].span = min(looks[i].span, looks[i].at-draws[at-1])
			}
		}
		g.byWho[whoIs(&thread)] = looks
	}
	for thread, looks := range g.threads {
		for _, run := range runs(looks, g.method == nil) {
			b := found[run[0].link]
			if b == nil || g.method != nil {
				b = &building{link: run[0].link, parts: map[int32]int64{}, holders: map[holderOf]int{}}
				found[b.link], all = b, append(all, b)
			}
			b.add(g, thread, run)
		}
	}
	out := make([]Request, len(all))
	for i, b := range all {
		out[i] = b.request(g)
		from := out[i].From.UnixNano()
		out[i].Cut = from < first || from+int64(out[i].For) > last
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		return cmp.Or(cmp.Compare(b.For, a.For), a.From.Compare(b.From), cmp.Compare(a.Trace, b.Trace)) < 0
	})
	return out
}

// seen returns two times: each thread was looked at before the first one, and again after the second. The beginning and
// the end of a request are seen if they are between them.
func (g *Gatherer) seen() (from, to int64) {
	from, to = math.MaxInt64, math.MinInt64
	for _, looks := range g.threads {
		for i := range looks {
			from, to = min(from, looks[i].at), max(to, looks[i].at+looks[i].span)
		}
	}
	return from + int64(g.Interval()), to - int64(g.Interval())
}

// runs cuts the looks at a thread into requests. With bridge, looks without a request between two looks of the same
// request belong to it: the thread's context could not be read there.
func runs(looks []look, bridge bool) (all [][]look) {
	first, last := -1, -1 // of the run
	for i := range looks {
		switch {
		case looks[i].link < 0:
			continue
		case first >= 0 && looks[last].link == looks[i].link && (bridge || i == last+1):
		default:
			if first >= 0 {
				all = append(all, looks[first:last+1])
			}
			first = i
		}
		last = i
	}
	if first >= 0 {
		all = append(all, looks[first:last+1])
	}
	return all
}

// building is a request whose runs are being collected.
type building struct {
	link    int32
	spans   [][2]int64
	threads []profile.Thread
	parts   map[int32]int64
	holders map[holderOf]int
}

func (b *building) add(g *Gatherer, of profile.Thread, run []look) {
	end := run[0].at
	holds := g.holds[whoIs(&of)]
	for i := range run {
		b.heldWhile(g, &run[i], holds)
		b.parts[run[i].part] += run[i].span
		end = max(end, run[i].at+run[i].span)
	}
	b.spans = append(b.spans, [2]int64{run[0].at, end})
	b.threads = append(b.threads, of)
}

func (b *building) request(g *Gatherer) (r Request) {
	first := 0
	for i := range b.spans {
		if b.spans[i][0] < b.spans[first][0] {
			first = i
		}
	}
	thread := b.threads[first]
	if thread.Virtual {
		thread.JavaName = g.names[thread.JavaID]
	}
	r.Trace, r.Thread = g.links.all[b.link].TraceID(), naming.ThreadLabel(&thread)
	sort.Slice(b.spans, func(i, j int) bool { return b.spans[i][0] < b.spans[j][0] })
	from, to, gap := b.spans[0][0], b.spans[0][1], int64(0)
	for _, s := range b.spans {
		gap += max(0, s[0]-to)
		to = max(to, s[1])
	}
	r.From, r.For, r.Unseen = time.Unix(0, from), time.Duration(to-from), time.Duration(gap)
	seen := map[profile.Thread]bool{}
	for _, t := range b.threads {
		seen[t] = true
	}
	r.Threads = len(seen)
	for part, ns := range b.parts {
		r.Parts = append(r.Parts, Part{g.parts.all[part], time.Duration(ns), b.holdersIn(part)})
	}
	byTime(r.Parts)
	return r
}

func byTime(parts []Part) {
	sort.Slice(parts, func(i, j int) bool {
		return cmp.Or(cmp.Compare(parts[j].For, parts[i].For), cmp.Compare(parts[i].What, parts[j].What)) < 0
	})
}
