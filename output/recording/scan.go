package recording

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"goprof/output/jfr"
	"goprof/profile"
)

// scan is the first reading of a JFR file. It finds which events the file has, and the facts about the recording. It
// decodes no samples.
type scan struct {
	contents
	meta    profile.Meta             // for recordings by other tools, and for facts that no part has
	parts   []*recordedPart          // in goprof's files, in the order of --event
	account *recordedPart            // the part of the current account
	periods map[string]time.Duration // of events, by name
	began   time.Time                // when the JVM started
	notes   []string
	noted   noted
	open    safepoints
	threads toldThreads
	lost    int64 // samples of CPU time that the JDK's recorder could not keep
}

type recordedPart struct {
	meta    profile.Meta
	summary *profile.Summary
}

func newScan() *scan {
	c := contents{stacks: make(map[string]bool), kinds: make(map[string]*profile.EventKind),
		waits: make(map[string]string)}
	return &scan{contents: c, periods: make(map[string]time.Duration), open: safepoints{}}
}

// maxStacks bounds the kept names of events.
const maxStacks = 1 << 12

// wants reports which events are decoded. It also notes which have stacks.
func (s *scan) wants(name string, stack bool) bool {
	if stack && len(s.stacks) < maxStacks {
		s.stacks[name] = true
	}
	return facts[name] != nil || isLife(name) || markEvents[name] != ""
}

// facts are the events that describe the recording.
var facts = map[string]func(*scan, *jfr.Reader, fields){
	"goprof.Recording":    (*scan).recording,
	"goprof.Account":      (*scan).accountOf,
	"goprof.Unseen":       (*scan).unseen,
	"goprof.Pauses":       (*scan).pauses,
	"goprof.Note":         (*scan).note,
	"goprof.EventKind":    (*scan).eventKind,
	"goprof.EventCount":   (*scan).eventCount,
	"goprof.IOSum":        (*scan).ioSum,
	"jdk.JVMInformation":  (*scan).jvm,
	"jdk.ActiveSetting":   (*scan).setting,
	"jdk.GCConfiguration": (*scan).collector,
	"goprof.EarlierName":  (*scan).earlierName,

	"jdk.CPUTimeSamplesLost": (*scan).samplesLost,
}

// run reads the whole file, without samples, and notes which events and threads it has.
func (s *scan) run(file io.ReaderAt, size int64) error {
	r := jfr.NewReader(file, size, s.wants)
	r.Tally()
	r.NoSamples()
	r.Threads(s.threads.meet)
	for {
		e, err := r.Next()
		if err == io.EOF {
			break
		}
		if isCutOff(err) && r.Chunks() > 0 {
			s.notes = append(s.notes, cutOffNote(err, r.Chunks()))
			break
		}
		if err != nil {
			return err
		}
		if fact := facts[e.Name]; fact != nil {
			fact(s, r, fieldsOf(e))
		} else {
			s.noted.take(r, e, s.open)
			if e.Name == threadEnd {
				s.threads.end(e.Thread.TID)
			}
		}
	}
	from, to := r.Range()
	if s.ours && s.account == nil && !r.Ended() && len(s.notes) == 0 {
		s.notes = append(s.notes, noEndNote(to))
	}
	s.counts = r.Counts()
	s.orderKinds()
	s.meta.Start, s.meta.Duration = from, max(to.Sub(from), 0)
	return nil
}

// fields are an event's fields by name.
type fields map[string]jfr.Field

func fieldsOf(e *jfr.Event) fields {
	f := make(fields, len(e.Fields))
	for _, field := range e.Fields {
		f[field.Name] = field
	}
	return f
}

func (f fields) text(name string) string        { return f[name].Text }
func (f fields) number(name string) int64       { return max(f[name].Number, 0) }
func (f fields) span(name string) time.Duration { return time.Duration(f.number(name)) }

func (s *scan) recording(_ *jfr.Reader, f fields) {
	s.ours = true
	p := s.part(f.text("part"))
	if p == nil {
		return
	}
	m := &p.meta
	m.Version, m.Host, m.PID = f.text("version"), f.text("host"), int(f.number("pid"))
	m.MainClass, m.JVM, m.Collector = f.text("mainClass"), f.text("jvm"), f.text("collector")
	m.Mode, m.Engine, m.Interval = f.text("mode"), f.text("engine"), f.span("interval")
	m.Weight = weightNamed(f.text("weight"))
}

// part returns the part with a name, and makes it if needed. It returns nil if there are too many.
func (s *scan) part(name string) *recordedPart {
	for _, p := range s.parts {
		if p.meta.Part == name {
			return p
		}
	}
	if len(s.parts) >= maxParts {
		return nil
	}
	s.parts = append(s.parts, &recordedPart{meta: profile.Meta{Part: name}})
	return s.parts[len(s.parts)-1]
}

// asked returns the names of the parts in the order of --event.
func (s *scan) asked() (names []string) {
	for _, p := range s.parts {
		names = append(names, strings.Split(cmp.Or(p.meta.Part, p.meta.Mode), ",")...)
	}
	return names
}

// partOf returns the part that samples of a type belong to. It is nil in recordings of other tools.
func (s *scan) partOf(event string) *recordedPart {
	name := cmp.Or(s.waits[event], s.mode(event))
	for _, p := range s.parts {
		if slices.Contains(strings.Split(p.meta.Part, ","), name) {
			return p
		}
	}
	if len(s.parts) == 0 {
		return nil
	}
	return s.parts[0]
}

func weightNamed(text string) profile.Weight {
	switch text {
	case "cpu time":
		return profile.CPUTime
	case "wall time":
		return profile.WallTime
	case "bytes":
		return profile.Bytes
	}
	return profile.Samples
}

// eventKind reads the type of the samples of an event, or of a wall-clock part. Each chunk repeats it.
func (s *scan) eventKind(_ *jfr.Reader, f fields) {
	typ, name, unit := f.text("type"), f.text("event"), weightNamed(f.text("unit"))
	if s.kinds[typ] != nil || s.waits[typ] != "" || len(s.first) >= maxParts {
		return
	}
	s.first = append(s.first, typ)
	if unit == profile.WallTime {
		s.waits[typ] = name
	} else {
		s.kinds[typ] = &profile.EventKind{Name: name, Unit: unit}
	}
}

// orderKinds sorts the events in the order of --event. The type of CPU time is in no EventKind.
func (s *scan) orderKinds() {
	asked := s.asked()
	if len(s.parts) > 1 {
		cpu := s.group(profile.ModeCPU)
		s.first = append(s.first, cpu[:min(1, len(cpu))]...)
	}
	place := func(typ string) int {
		if at := slices.Index(asked, cmp.Or(s.waits[typ], s.mode(typ))); at >= 0 {
			return at
		}
		return len(asked)
	}
	sort.SliceStable(s.first, func(i, j int) bool { return place(s.first[i]) < place(s.first[j]) })
}

func (s *scan) eventCount(_ *jfr.Reader, f fields) {
	if a := s.sum(); len(a.Events) < maxParts {
		a.Events = append(a.Events, profile.EventCount{Name: f.text("event"), Unit: weightNamed(f.text("unit")),
			Hits: f.number("hits"), Amount: f.number("amount"), Taken: f.number("taken"), Stood: f.number("stood"),
			Missed: f.number("missed"), Interval: f.number("interval")})
	}
}

// maxSums bounds the sums of files and peers.
const maxSums = 1 << 14

func (s *scan) ioSum(_ *jfr.Reader, f fields) {
	a := s.sum()
	if a.IO == nil {
		a.IO = &profile.IO{}
	}
	if len(a.IO.Sums) < maxSums {
		a.IO.Sums = append(a.IO.Sums, profile.IOSum{Kind: f.text("kind"), Target: f.text("target"), Op: f.text("operation"),
			Calls: f.number("calls"), Bytes: f.number("transferred"), Took: f.span("took"), Failed: f.number("failures"),
			Pending: f.number("pending"), Pended: f.span("pended")})
	}
}

// sum returns the current account. goprof.Account begins the account, and the events after it complete it.
func (s *scan) sum() *profile.Summary {
	if s.account == nil {
		s.account = cmp.Or(s.part(""), new(recordedPart))
	}
	if s.account.summary == nil {
		s.account.summary = &profile.Summary{TruncatedBy: make(map[string]int64), LostBy: make(map[string]int64)}
	}
	return s.account.summary
}

func (s *scan) accountOf(_ *jfr.Reader, f fields) {
	s.account = s.part(f.text("part"))
	a := s.sum()
	a.Attempted, a.Lost = f.number("attempted"), f.number("lost")
	a.Whole, a.Truncated = f.number("whole"), f.number("truncated")
	a.Samples = a.Whole + a.Truncated
	a.LeafLikely, a.LeafGuessed, a.Skipped = f.number("leafLikely"), f.number("leafGuessed"), f.number("skipped")
	a.Threads, a.Rate, a.RateReached = int(f.number("threads")), f["rate"].Real, f["rateReached"].Real
	a.Times = profile.Times{Process: f.span("processTime"), Sampled: f.span("sampledTime"),
		NotSampled: f.span("notSampledTime"), Exited: f.span("exitedTime")}
	a.OwnCPU, a.Quality = f.span("ownTime"), profile.Quality(f.text("quality"))
}

// maxParts bounds the reasons and notes of an account.
const maxParts = 256

func (s *scan) unseen(_ *jfr.Reader, f fields) {
	by := s.sum().TruncatedBy
	if f.number("lost") != 0 {
		by = s.sum().LostBy
	}
	if len(by) < maxParts {
		by[f.text("reason")] = f.number("samples")
	}
}

func (s *scan) pauses(_ *jfr.Reader, f fields) {
	s.sum().Pauses = profile.Pauses{Count: f.number("count"), P50: f.span("median"), P99: f.span("p99"),
		Max: f.span("longest"), Total: f.span("total"), Bound: f.span("bound")}
}

func (s *scan) note(_ *jfr.Reader, f fields) {
	if a := s.sum(); len(a.Notes) < maxParts {
		a.Notes = append(a.Notes, profile.Note{Name: f.text("name"), Text: f.text("text"), Remedy: f.text("remedy")})
	}
}

// jvm reads the JDK's and async-profiler's facts about the JVM. From the program's arguments it takes only the first
// word, which is the main class or jar.
func (s *scan) jvm(_ *jfr.Reader, f fields) {
	m := &s.meta
	m.PID = cmp.Or(m.PID, int(f.number("pid")))
	if at := f.number("jvmStartTime"); at > 0 {
		s.began = time.UnixMilli(at)
	}
	program, _, _ := strings.Cut(f.text("javaArguments"), " ")
	m.MainClass = cmp.Or(m.MainClass, program)
	version, _, _ := strings.Cut(f.text("jvmVersion"), " for ")
	m.JVM = cmp.Or(m.JVM, version, f.text("jvmName"))
}

func (s *scan) collector(_ *jfr.Reader, f fields) {
	s.meta.Collector = cmp.Or(s.meta.Collector, f.text("oldCollector"))
}

func (s *scan) setting(r *jfr.Reader, f fields) {
	name := f.text("name")
	if name != "period" && name != "interval" && name != "throttle" {
		return
	}
	if period := parsePeriod(f.text("value")); period > 0 && len(s.periods) < maxParts {
		s.periods[r.TypeName(f["id"].Number)] = period
	}
}

// earlierName reads an earlier name of a thread. In goprof's files, a thread has one name in each chunk.
func (s *scan) earlierName(r *jfr.Reader, f fields) {
	s.threads.rename(int(f.number("tid")), f.number("javaThreadId"), f.text("name"))
}

func (s *scan) samplesLost(_ *jfr.Reader, f fields) { s.lost = plus(s.lost, f.number("lostSamples")) }

// plus adds numbers of a file without overflow.
func plus(a, b int64) int64 { return a + min(b, math.MaxInt64-a) }

// parsePeriod reads "20 ms", or a number of ns. It returns 0 if the text is neither.
func parsePeriod(text string) time.Duration {
	d, err := time.ParseDuration(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		d, err = time.ParseDuration(text + "ns")
	}
	if err != nil || d < 0 {
		return 0
	}
	return d
}

func (s *scan) fill(i *Info, events []string) {
	i.Event, i.Notes = eventText(events), s.notes
	i.Meta, i.JVMStart = s.meta, s.began
	if p := s.partOf(events[0]); p != nil {
		i.Meta = p.meta
		if p.summary != nil {
			i.Summary = new(*p.summary)
		}
		m := &i.Meta
		m.Start, m.Duration = s.meta.Start, s.meta.Duration
		m.PID, m.MainClass = cmp.Or(m.PID, s.meta.PID), cmp.Or(m.MainClass, s.meta.MainClass)
		m.JVM, m.Collector = cmp.Or(m.JVM, s.meta.JVM), cmp.Or(m.Collector, s.meta.Collector)
		m.Part = "" // this part is read as a recording of its own
	}
	i.Weights = s.weights(events[0])
	m, mode := &i.Meta, s.mode(events[0])
	if !s.ours || mode != profile.ModeCPU && mode != profile.ModeWall {
		m.Mode, m.Weight = mode, i.Weights[0]
	}
	if !s.ours {
		m.Interval = s.periods[events[0]]
	}
	if i.Summary != nil {
		i.Summary.Meta = *m
	}
	i.Notes = append(i.Notes, s.cpuNotes(events)...)
}

// cpuNotes say which of the JDK's two kinds of samples of CPU time is read, if a file has both, and how good they are.
// JEP 509 has the differences: ExecutionSample looks at some threads at fixed times, and only while they run Java code.
func (s *scan) cpuNotes(events []string) (notes []string) {
	read := slices.Contains(events, cpuTimeSample)
	if read && s.has(executionSample) {
		notes = append(notes, fmt.Sprintf("CPU time is read from %d jdk.CPUTimeSample. The %d jdk.ExecutionSample of the "+
			"file are biased, and leave native code out: --event %s reads them", s.counts[cpuTimeSample],
			s.counts[executionSample], executionSample))
	}
	if read && s.lost > 0 {
		notes = append(notes, fmt.Sprintf("the JDK's recorder lost %d samples of CPU time: its queues were full",
			s.lost))
	}
	if slices.Contains(events, executionSample) && s.has(cpuTimeSample) {
		notes = append(notes, fmt.Sprintf("jdk.ExecutionSample is biased. The file has %d jdk.CPUTimeSample: "+
			"--event cpu", s.counts[cpuTimeSample]))
	}
	return notes
}

// fillParts fills in the facts about the parts, if there are several.
func (s *scan) fillParts(i *Info, events []string) {
	parts, others := s.allParts()
	i.Others = slices.DeleteFunc(others, func(p Part) bool { return slices.Contains(events, p.Name) })
	if len(parts) < 2 {
		return
	}
	for k := range parts {
		of := Info{}
		p := &parts[k]
		p.read = slices.ContainsFunc(events, func(e string) bool { return slices.Contains(p.events, e) })
		s.fill(&of, p.events)
		p.Meta, p.Summary = of.Meta, of.Summary
		p.Meta.Part = p.Name
		if r := s.partOf(p.events[0]); r != nil {
			p.Meta.Part = r.meta.Part
		}
		if p.Kind.Unit == profile.WallTime && p.Summary != nil { // an event stands for several looks
			p.Samples = p.Summary.Samples
		}
	}
	i.Parts = parts
}
