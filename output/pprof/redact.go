package pprof

import (
	"io"

	pb "github.com/google/pprof/profile"

	"goprof/profile"
	"goprof/profile/redact"
)

// Redact writes a profile again with all its values, but without the names that a Redactor removes.
func Redact(to io.Writer, from io.Reader, by *redact.Redactor) error {
	f, err := Read(from)
	if err != nil {
		return err
	}
	p := f.p
	for _, m := range p.Mapping {
		m.BuildID = by.Build(m.BuildID)
	}
	redactFunctions(p, by)
	for _, m := range p.Mapping {
		m.File = by.Path(m.File)
		m.KernelRelocationSymbol = ""
	}
	for _, s := range p.Sample {
		redactLabels(s, by)
	}
	meta := by.Meta(f.Meta)
	p.Comments = comments(&meta)
	p.DropFrames, p.KeepFrames, p.DocURL = "", "", ""
	for _, t := range append(p.SampleType, p.PeriodType) {
		if t != nil {
			t.Type, t.Unit = by.Native(t.Type, ""), by.Native(t.Unit, "")
		}
	}
	p.DefaultSampleType = by.Native(p.DefaultSampleType, "")
	return write(to, p)
}

// redactFunctions renames the functions. Locations show which image a native function is in.
func redactFunctions(p *pb.Profile, by *redact.Redactor) {
	image := make(map[uint64]string)
	for _, l := range p.Location {
		if l.Mapping == nil {
			continue
		}
		for i := range l.Line {
			image[l.Line[i].Function.ID] = l.Mapping.File
		}
	}
	for _, f := range p.Function {
		file := image[f.ID]
		out := by.Func(profile.Func{Name: f.Name, Module: file, File: f.Filename})
		system := by.Func(profile.Func{Name: f.SystemName, Module: file})
		if f.Name != "" {
			f.Name = out.Name
		}
		if f.SystemName != "" {
			f.SystemName = system.Name
		}
		f.Filename = out.File
	}
}

// openNumbers are the numeric labels that stay: goprof's own, and the size of an object, from Go's runtime.
var openNumbers = []string{labelTID, "bytes"}

// redactLabels redacts an application's own labels of a sample. A number may identify a customer. So long ones are
// removed from texts, and numeric labels stay only under the names in openNumbers.
func redactLabels(s *pb.Sample, by *redact.Redactor) {
	labels := make(map[string][]string, len(s.Label))
	for key, values := range s.Label {
		if key == labelTrace || key == labelSpan {
			continue // with these, a customer's traces could be found
		}
		out := make([]string, len(values))
		for i, v := range values {
			if _, err := profile.ParseState(v); key == labelState && err == nil {
				out[i] = v
				continue
			}
			out[i] = by.ThreadName(v)
		}
		labels[by.Native(key, "")] = out
	}
	s.Label = labels
	numbers, units := make(map[string][]int64, len(s.NumLabel)), make(map[string][]string, len(s.NumUnit))
	for _, key := range openNumbers {
		if values, ok := s.NumLabel[key]; ok {
			numbers[key] = values
		}
		if all, ok := s.NumUnit[key]; ok {
			units[key] = make([]string, len(all))
			for i, unit := range all {
				units[key][i] = by.Native(unit, "")
			}
		}
	}
	s.NumLabel, s.NumUnit = numbers, units
}
