package recording

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"goprof/output/pprof"
	"goprof/profile"
)

// pprofFile is a profile in pprof's format. Its samples are sums, without times.
type pprofFile struct {
	about  Info
	file   *pprof.File
	values []value
}

// value is one of the values of each sample in a file.
type value struct {
	index  int
	weight profile.Weight
	unit   int64 // in goprof's units: nanoseconds, bytes
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
	p.about.All = o.All && len(p.about.Parts) > 1
	// Only all samples together show which facts samples have. They are in memory.
	samples := false
	err = file.Each(func(s *profile.Sample, values []int64) error {
		samples = true
		for k := range p.about.Parts {
			p.about.Parts[k].met(values)
		}
		p.about.Threads = p.about.Threads || s.Thread != (profile.Thread{})
		p.about.States = p.about.States || !s.NoState
		return nil
	})
	if err == nil && !samples {
		err = &pprof.Bad{Problem: "there are no samples in it"}
	}
	return p, err
}

// choose finds the part to read, and the values of its samples. If two values have the same weight, it chooses the
// file's default value.
func (p *pprofFile) choose(event string) error {
	if len(p.file.Types) == 0 {
		return &pprof.Bad{Problem: "its samples have no values"}
	}
	parts := p.findParts()
	usual, alone := p.file.Default(), false
	if event != "" {
		if usual, alone = p.typeNamed(event, parts); usual < 0 {
			return &Lacks{Problem: fmt.Sprintf("it has no value %q; it has %s", event, strings.Join(p.file.Types, ", "))}
		}
	}
	part := parts[slices.IndexFunc(parts, func(part Part) bool { return part.value(usual) != nil })]
	p.values = []value{*part.value(usual)}
	for _, v := range part.values {
		if !alone && v.index != usual {
			p.values = append(p.values, v)
		}
	}
	for _, v := range p.values {
		p.about.Weights = append(p.about.Weights, v.weight)
	}
	m := &p.about.Meta
	p.about.Event, _, _ = strings.Cut(p.file.Types[usual], "/")
	m.Weight, m.Mode = p.values[0].weight, cmp.Or(m.Mode, modes[p.values[0].weight])
	if len(parts) > 1 {
		m.Mode = cmp.Or(part.Kind.Name, profile.ModeCPU)
		p.setParts(parts, usual)
	}
	return nil
}

// findParts divides the values of the profile into parts. A part has one value of each weight: a second value of the
// same weight begins the next part.
func (p *pprofFile) findParts() (parts []Part) {
	for i, t := range p.file.Types {
		v := valueOf(t)
		v.index = i
		n := len(parts) - 1
		if n < 0 || slices.ContainsFunc(parts[n].values, func(has value) bool { return has.weight == v.weight }) {
			parts = append(parts, Part{})
			n++
		}
		parts[n].values = append(parts[n].values, v)
	}
	for k := range parts {
		parts[k].describe(p.file.Types, k == 0)
	}
	return parts
}

// describe names a part after the value of its samples.
func (p *Part) describe(types []string, first bool) {
	main := p.values[0]
	for _, v := range p.values {
		if p.Weights = append(p.Weights, v.weight); v.weight != profile.Samples {
			main = v
		}
	}
	name, _, _ := strings.Cut(types[main.index], "/")
	switch {
	case main.weight == profile.CPUTime || first && main.weight == profile.Samples:
		p.Name = profile.ModeCPU
		return
	case main.weight == profile.Bytes:
		name = strings.TrimSuffix(name, "_space")
	case name == "delay": // of locks, in Go's profiles
		name = "lock"
	}
	p.Name, p.Kind = name, profile.EventKind{Name: name, Unit: main.weight}
}

// value returns the part's value with this index. It is nil if the value belongs to another part.
func (p *Part) value(index int) *value {
	if i := slices.IndexFunc(p.values, func(v value) bool { return v.index == index }); i >= 0 {
		return &p.values[i]
	}
	return nil
}

// setParts describes all parts. The part that is read comes first.
func (p *pprofFile) setParts(parts []Part, read int) {
	for k := range parts {
		m := p.about.Meta
		m.Weight, m.Mode, m.Part = parts[k].values[0].weight, cmp.Or(parts[k].Kind.Name, profile.ModeCPU), parts[k].Name
		parts[k].Meta = m
	}
	at := slices.IndexFunc(parts, func(part Part) bool { return part.value(read) != nil })
	parts[at].read = true
	parts = slices.Insert(slices.Delete(slices.Clone(parts), at, at+1), 0, parts[at])
	p.about.Parts = parts
}

// modes are the modes of profiles by weight, if the profile has no mode.
var modes = map[profile.Weight]string{
	profile.Samples: profile.ModeCPU, profile.CPUTime: profile.ModeCPU,
	profile.WallTime: profile.ModeWall, profile.Bytes: "alloc",
}

func (p *Part) met(values []int64) {
	if count := p.values[0]; count.weight == profile.Samples {
		p.Samples = plus(p.Samples, max(values[count.index], 0))
	} else if values[count.index] > 0 {
		p.Samples++
	}
}

// typeNamed returns the index of a value type. event names either the type, which then is read alone, or its part. It
// returns -1 if nothing has the name.
func (p *pprofFile) typeNamed(event string, parts []Part) (at int, alone bool) {
	for i, t := range p.file.Types {
		name, _, _ := strings.Cut(t, "/")
		if strings.EqualFold(name, event) || strings.EqualFold(t, event) {
			return i, true
		}
	}
	for k := range parts {
		if values := parts[k].values; strings.EqualFold(parts[k].Name, event) {
			if at := p.file.Default(); parts[k].value(at) != nil {
				return at, false
			}
			return values[len(values)-1].index, false
		}
	}
	return -1, false
}

var timeUnits = map[string]time.Duration{
	"nanoseconds": time.Nanosecond, "microseconds": time.Microsecond, "milliseconds": time.Millisecond,
	"seconds": time.Second,
}

var byteUnits = map[string]int64{"bytes": 1, "byte": 1, "kilobytes": 1 << 10, "megabytes": 1 << 20}

// valueOf returns a value's meaning by its type, such as "cpu/nanoseconds".
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
	if !p.about.All {
		return p.file.Each(func(s *profile.Sample, values []int64) error { return p.sample(s, p.values, values, visit) })
	}
	return p.file.Each(func(s *profile.Sample, values []int64) error {
		plain := *s
		for k := range p.about.Parts {
			part := &p.about.Parts[k]
			if *s = plain; part.Kind.Name != "" {
				s.Event = &part.Kind
			}
			if err := p.sample(s, part.values, values, visit); err != nil {
				return err
			}
		}
		return nil
	})
}

// sample sets a sample's values from those of a part. Profiles of differences also have negative values.
func (p *pprofFile) sample(s *profile.Sample, of []value, values []int64, visit func(*profile.Sample) error) error {
	some := false
	for _, v := range of {
		if n := values[v.index]; n > 0 {
			if err := v.count(s, n); err != nil {
				return err
			}
			some = true
		} else if v.weight == profile.Samples {
			s.TimeOnly = true
		}
	}
	if !some {
		return nil
	}
	if len(s.Stack.Frames) == 0 {
		s.Stack.Frames = append(s.Stack.Frames, noStack)
	}
	sortFrames(s.Stack.Frames)
	return visit(s)
}

// sortFrames recognises frames that are not methods by their names: outside of images the format has only one kind of
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

func (v *value) count(s *profile.Sample, n int64) error {
	if n > math.MaxInt64/v.unit {
		return &pprof.Bad{Problem: tooLarge, TooMuch: true}
	}
	count(s, v.weight, n*v.unit)
	return nil
}
