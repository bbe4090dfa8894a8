package recording

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"goprof/output/pprof"
	"goprof/profile"
)

// pprofFile is a profile of pprof's format. Its samples are sums, without times.
type pprofFile struct {
	about  Info
	file   *pprof.File
	values []value
}

// value is one of the values that each sample of a file has.
type value struct {
	index  int
	weight profile.Weight
	unit   int64 // in ours: nanoseconds, bytes
	wall   bool
}

func openPProf(from io.Reader, name string, o Options) (*pprofFile, error) {
	file, err := pprof.Read(from)
	if err != nil {
		return nil, err
	}
	p := &pprofFile{file: file, about: Info{Name: name, Format: Pprof, Meta: file.Meta}}
	if err := p.choose(o.Event); err != nil {
		return nil, err
	}
	// Only all samples together tell what samples have. They are in memory.
	samples := false
	err = file.Each(func(s *profile.Sample, _ []int64) error {
		samples = true
		p.about.Threads = p.about.Threads || s.Thread != (profile.Thread{})
		p.about.States = p.about.States || !s.NoState
		return nil
	})
	if err == nil && !samples {
		err = &pprof.Bad{Problem: "there are no samples in it"}
	}
	return p, err
}

// choose finds out which values there are for each weight. The default one is the first choice for its weight.
func (p *pprofFile) choose(event string) error {
	if len(p.file.Types) == 0 {
		return &pprof.Bad{Problem: "its samples have no values"}
	}
	usual := p.file.Default()
	if event != "" {
		if usual = p.typeNamed(event); usual < 0 {
			return &Lacks{Problem: fmt.Sprintf("it has no value %q; it has %s", event, strings.Join(p.file.Types, ", "))}
		}
	}
	p.about.Event, _, _ = strings.Cut(p.file.Types[usual], "/")
	p.add(usual)
	p.about.Meta.Weight = p.values[0].weight
	for i, t := range p.file.Types {
		if event == "" && t == "samples/count" {
			p.add(i)
		}
	}
	for i := range p.file.Types {
		if event == "" {
			p.add(i)
		}
	}
	for _, v := range p.values {
		p.about.Weights = append(p.about.Weights, v.weight)
	}
	if p.about.Meta.Mode == "" {
		p.about.Meta.Mode = modes[p.values[0].weight]
	}
	return nil
}

// modes are the modes of profiles by their weight, if the profile does not say its mode.
var modes = map[profile.Weight]string{
	profile.Samples: profile.ModeCPU, profile.CPUTime: profile.ModeCPU,
	profile.WallTime: profile.ModeWall, profile.Bytes: "alloc",
}

func (p *pprofFile) typeNamed(event string) int {
	for i, t := range p.file.Types {
		name, _, _ := strings.Cut(t, "/")
		if strings.EqualFold(name, event) || strings.EqualFold(t, event) {
			return i
		}
	}
	return -1
}

// add takes a value, if its weight has none yet.
func (p *pprofFile) add(i int) {
	v := valueOf(p.file.Types[i])
	v.index = i
	for _, has := range p.values {
		if has.weight == v.weight {
			return
		}
	}
	p.values = append(p.values, v)
}

var timeUnits = map[string]time.Duration{
	"nanoseconds": time.Nanosecond, "microseconds": time.Microsecond, "milliseconds": time.Millisecond,
	"seconds": time.Second,
}

var byteUnits = map[string]int64{"bytes": 1, "byte": 1, "kilobytes": 1 << 10, "megabytes": 1 << 20}

// valueOf tells a value's meaning by its type: "cpu/nanoseconds".
func valueOf(typ string) value {
	name, unit, _ := strings.Cut(typ, "/")
	if ns, ok := timeUnits[unit]; ok {
		if strings.Contains(name, "cpu") {
			return value{weight: profile.CPUTime, unit: int64(ns)}
		}
		return value{weight: profile.WallTime, unit: int64(ns), wall: true}
	}
	if size, ok := byteUnits[unit]; ok {
		return value{weight: profile.Bytes, unit: size}
	}
	return value{weight: profile.Samples, unit: 1}
}

func (p *pprofFile) info() *Info                  { return &p.about }
func (p *pprofFile) Info() Info                   { return p.about }
func (p *pprofFile) Marks(func(Mark) error) error { return nil }

func (p *pprofFile) Each(visit func(*profile.Sample) error) error {
	return p.file.Each(func(s *profile.Sample, values []int64) error {
		some := false
		for _, v := range p.values {
			if n := values[v.index]; n > 0 {
				v.count(s, n)
				some = true
			} else if v.weight == profile.Samples {
				s.TimeOnly = true
			}
		}
		if !some { // differences have negative values, too
			return nil
		}
		if len(s.Stack.Frames) == 0 {
			s.Stack.Frames = append(s.Stack.Frames, noStack)
		}
		sortFrames(s.Stack.Frames)
		return visit(s)
	})
}

// sortFrames recognises frames that are no methods by their names: outside of images the format has only one sort of
// code.
func sortFrames(frames []profile.Frame) {
	for i := range frames {
		f := &frames[i]
		switch name := f.Func.Name; {
		case !f.Kind.Java() || name == "":
		case name[0] == '[' && profile.IsState(name):
			f.Kind = profile.StateFrame
		case name[0] == '[':
			f.Kind = profile.Gap
		case strings.IndexByte(name, '.') < 0: // a method has its class before its name
			f.Kind = profile.Stub
		}
	}
}

func (v *value) count(s *profile.Sample, n int64) {
	if n > math.MaxInt64/v.unit {
		n = math.MaxInt64 / v.unit
	}
	count(s, v.weight, n*v.unit)
}
