package recording

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"goprof/profile"
	"goprof/profile/naming"
)

// Filter chooses samples. The zero value chooses all.
type Filter struct {
	From, To      time.Duration  // since the recording's start; To is the first unwanted time, 0 for none
	Thread        *regexp.Regexp // of "name tid=N", "name virtual #N"
	ExcludeThread *regexp.Regexp
	Include       *regexp.Regexp // of a frame's name: stacks without such a frame are left out
	Exclude       *regexp.Regexp // of a frame's name: stacks with such a frame are left out
	States        []profile.State
}

func (f *Filter) Any() bool {
	return f.From > 0 || f.To > 0 || f.Thread != nil || f.ExcludeThread != nil || f.Include != nil || f.Exclude != nil ||
		len(f.States) > 0
}

// Of returns the part of a recording that the filter wants. If the filter needs facts that the recording does not have,
// the error is Lacks.
func (f *Filter) Of(src Source) (*Filtered, error) {
	i := src.Info()
	switch {
	case (f.From > 0 || f.To > 0) && !i.Timed:
		return nil, &Lacks{Problem: "--from and --to need times, and a " + i.Format + " file has none",
			Remedy: "goprof record -o FILE.jfr keeps when each sample was taken"}
	case (f.Thread != nil || f.ExcludeThread != nil) && !i.Threads:
		return nil, &Lacks{Problem: "--thread and --exclude-thread need threads, and stacks in it are of all together",
			Remedy: "goprof record --threads"}
	case len(f.States) > 0 && !i.States:
		return nil, &Lacks{Problem: "--state needs what threads did, and the file does not say it",
			Remedy: "goprof record --mode wall"}
	}
	return &Filtered{of: src, f: *f, threads: make(map[profile.Thread]bool), earlier: i.Earlier,
		funcs: make(map[*profile.Func]verdict)}, nil
}

// Filtered is the part of a recording that a filter wants. It is a Source. It has marks if the recording has marks.
type Filtered struct {
	of   Source
	f    Filter
	left [numCauses]int64 // number of looks that were left out
	kept int64

	threads map[profile.Thread]bool // whether they are wanted
	earlier map[profile.Thread][]string
	funcs   map[*profile.Func]verdict
	stacks  profile.ByStack[bool] // whether they are wanted; for one reading, because each reading numbers stacks again
}

// cause is why a sample was left out.
type cause uint8

const (
	wanted cause = iota
	byTime
	byThread
	byState
	byFrame
	numCauses
)

var causeWords = [numCauses]string{
	byTime: "by their time", byThread: "by their thread", byState: "by their state", byFrame: "by their frames",
}

type verdict struct{ include, exclude bool }

// maxVerdicts bounds how many functions and threads are remembered.
const maxVerdicts = 1 << 17

// Info returns the recording's Info for the wanted time. It has no account, because that is for all samples.
func (p *Filtered) Info() Info {
	i := p.of.Info()
	i.Summary = nil
	p.cut(&i, &i.Meta)
	i.Parts = slices.Clone(i.Parts)
	for k := range i.Parts {
		i.Parts[k].Summary = nil
		p.cut(&i, &i.Parts[k].Meta)
	}
	return i
}

// cut limits a recording's Meta to the wanted time.
func (p *Filtered) cut(i *Info, m *profile.Meta) {
	if !i.Timed {
		return
	}
	end := m.Duration
	if p.f.To > 0 {
		end = min(p.f.To, end)
	}
	m.Start, m.Duration = m.Start.Add(p.f.From), max(end-p.f.From, 0)
}

func (p *Filtered) Each(visit func(*profile.Sample) error) error { return p.Visit(AllStacks, visit) }

// Visit reads only the stacks that the filter or the caller needs.
func (p *Filtered) Visit(stacks Stacks, visit func(*profile.Sample) error) error {
	if stacks == AllStacks {
		visit = readFirst(visit)
	}
	if stacks == AllStacks || p.f.Include != nil || p.f.Exclude != nil {
		stacks = LaterStacks
	}
	p.left, p.kept, p.stacks = [numCauses]int64{}, 0, profile.ByStack[bool]{}
	start := p.of.Info().Meta.Start.UnixNano()
	return Visit(p.of, stacks, func(s *profile.Sample) error {
		why, err := p.judge(s, start)
		if err != nil {
			return err
		}
		if why != wanted {
			p.left[why] += s.Looks()
			return nil
		}
		p.kept += s.Looks()
		return visit(s)
	})
}

// Marks returns the marks that overlap with the wanted time.
func (p *Filtered) Marks(visit func(Mark) error) error {
	start := p.of.Info().Meta.Start.UnixNano()
	return Marks(p.of, func(m Mark) error {
		from := time.Duration(m.At.Wall - start)
		if from+m.For < p.f.From || p.f.To > 0 && from >= p.f.To {
			return nil
		}
		return visit(m)
	})
}

// judge returns why a sample is left out, or that it is wanted.
func (p *Filtered) judge(s *profile.Sample, start int64) (cause, error) {
	f := &p.f
	at := time.Duration(s.At.Wall - start)
	switch {
	case f.From > 0 && at < f.From || f.To > 0 && at >= f.To:
		return byTime, nil
	case len(f.States) > 0 && (s.NoState || !slices.Contains(f.States, s.State)):
		return byState, nil
	case (f.Thread != nil || f.ExcludeThread != nil) && !p.thread(&s.Thread):
		return byThread, nil
	case f.Include == nil && f.Exclude == nil:
		return wanted, nil
	}
	return p.judgeStack(s)
}

// judgeStack judges a stack by its frames, once for each stack.
func (p *Filtered) judgeStack(s *profile.Sample) (cause, error) {
	ok, known := p.stacks.Get(s.StackNumber, 0)
	if !known {
		if err := s.Read(); err != nil {
			return wanted, err
		}
		ok = p.keeps(s.Stack)
		p.stacks.Put(s.StackNumber, 0, ok)
	}
	if ok {
		return wanted, nil
	}
	return byFrame, nil
}

func (p *Filtered) thread(t *profile.Thread) bool {
	return profile.Cached(p.threads, maxVerdicts, *t, func() bool {
		return p.named(t, p.f.Thread, true) && !p.named(t, p.f.ExcludeThread, false)
	})
}

// named reports whether the filter wants one of the thread's names, past or present.
func (p *Filtered) named(t *profile.Thread, re *regexp.Regexp, otherwise bool) bool {
	label := naming.ThreadLabel(t)
	if matches(re, label[1:len(label)-1], otherwise) {
		return true
	}
	return slices.ContainsFunc(p.earlier[*t], func(name string) bool {
		was := *t
		was.JavaName = name
		label := naming.ThreadLabel(&was)
		return matches(re, label[1:len(label)-1], otherwise)
	})
}

func matches(re *regexp.Regexp, text string, otherwise bool) bool {
	if re == nil {
		return otherwise
	}
	return re.MatchString(text)
}

// keeps reports whether a stack passes --include and --exclude. The reason of a truncated stack counts as a frame.
func (p *Filtered) keeps(s *profile.Stack) bool {
	included := p.f.Include == nil
	if s.Truncated != profile.Whole {
		label := "[truncated: " + s.Truncated.String() + "]"
		if matches(p.f.Exclude, label, false) {
			return false
		}
		included = included || p.f.Include.MatchString(label)
	}
	for i := range s.Frames {
		v := p.verdict(s.Frames[i].Func)
		if v.exclude {
			return false
		}
		included = included || v.include
	}
	return included
}

func (p *Filtered) verdict(fn *profile.Func) verdict {
	return profile.Cached(p.funcs, maxVerdicts, fn, func() verdict {
		return verdict{matches(p.f.Include, fn.Name, false), matches(p.f.Exclude, fn.Name, false)}
	})
}

// LeftOut says how many samples the last Each has left out, and why. It is empty if there were none.
func (p *Filtered) LeftOut() string {
	all := p.kept
	var list []string
	for why, n := range p.left {
		if all += n; n > 0 {
			list = append(list, fmt.Sprintf("%d %s", n, causeWords[why]))
		}
	}
	if len(list) == 0 {
		return ""
	}
	what := "samples"
	if i := p.of.Info(); !i.Counts() {
		what = "stacks"
	}
	return fmt.Sprintf("%d of %d %s left out: %s", all-p.kept, all, what, strings.Join(list, ", "))
}

// NoneLeft is the error if there are no samples. That is no fault of the file.
type NoneLeft struct{ LeftOut string }

func (e *NoneLeft) Error() string { return cmp.Or(e.LeftOut, "there are no samples in it") }

// Empty is the error if no samples are left.
func Empty(src Source) error {
	e := &NoneLeft{}
	if f, ok := src.(*Filtered); ok {
		e.LeftOut = f.LeftOut()
	}
	return e
}

// IsEmpty reports whether an error says that there are no samples.
func IsEmpty(err error) bool {
	var none *NoneLeft
	return errors.As(err, &none)
}
