package pprof

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	pb "github.com/google/pprof/profile"

	"goprof/profile"
)

// Bounds for a file, besides memory (budget.go). Many samples may have the same location of many frames.
const (
	maxPacked    = 64 << 20 // bytes
	maxUnpacked  = 64 << 20
	maxTypes     = 1 << 8  // of values
	maxFrames    = 1 << 16 // of one sample
	maxAllFrames = 1 << 28 // of all samples
)

type Bad struct {
	Problem string
	TooMuch bool // nothing is wrong, but there is more than goprof reads
}

func (e *Bad) Error() string { return e.Problem }

type File struct {
	Types []string     // of values: "cpu/nanoseconds"
	Meta  profile.Meta // as far as the format has it
	p     *pb.Profile
}

// Read reads a profile, packed or not.
func Read(from io.Reader) (*File, error) {
	data, err := limited(from, maxPacked)
	if err != nil {
		return nil, err
	}
	size := len(data)
	if len(data) >= 2 && data[0] == 0x1f && data[1] == 0x8b {
		if data, err = unpack(data); err != nil {
			return nil, err
		}
	}
	if err := checkMemory(data, memoryFor(size, len(data))); err != nil {
		return nil, err
	}
	p, err := pb.ParseUncompressed(data)
	if err == nil {
		err = p.CheckValid()
	}
	if err != nil {
		return nil, &Bad{Problem: "this is no pprof profile: " + err.Error()}
	}
	if len(p.SampleType) > maxTypes {
		return nil, &Bad{Problem: fmt.Sprintf("more than %d types of values", maxTypes), TooMuch: true}
	}
	f := &File{p: p, Meta: profile.Meta{Duration: time.Duration(p.DurationNanos), Interval: time.Duration(p.Period)}}
	for _, t := range p.SampleType {
		f.Types = append(f.Types, t.Type+"/"+t.Unit)
	}
	if p.TimeNanos != 0 {
		f.Meta.Start = time.Unix(0, p.TimeNanos)
	}
	readComments(&f.Meta, p.Comments)
	return f, nil
}

func unpack(data []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, &Bad{Problem: "it is packed, but damaged: " + err.Error()}
	}
	return limited(z, min(maxUnpacked, freeUnpacked+unpackedOfByte*int64(len(data))))
}

func limited(from io.Reader, most int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(from, most+1))
	switch {
	case errors.Is(err, gzip.ErrChecksum), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, gzip.ErrHeader):
		return nil, &Bad{Problem: "it is packed, but damaged: " + err.Error()}
	case err != nil:
		return nil, err
	case int64(len(data)) > most:
		return nil, &Bad{Problem: fmt.Sprintf("more than %d MiB", most>>20), TooMuch: true}
	}
	return data, nil
}

// Each visits the samples with the values of all Types, but does not set a sample's own counts. The sample is valid
// only during the call. Its Funcs stay valid. The first error of visit ends Each.
func (f *File) Each(visit func(s *profile.Sample, values []int64) error) error {
	r := fileReader{functions: make(map[funcKey]*profile.Func)}
	frames := 0
	for _, s := range f.p.Sample {
		if err := r.read(s); err != nil {
			return err
		}
		if frames += len(r.stack.Frames); frames > maxAllFrames {
			return &Bad{Problem: fmt.Sprintf("more than %d frames", maxAllFrames), TooMuch: true}
		}
		if err := visit(&r.sample, s.Value); err != nil {
			return err
		}
	}
	return nil
}

// Default returns the index of the type that viewers show first: the file's default, or else the last.
func (f *File) Default() int {
	for i, t := range f.p.SampleType {
		if t.Type == f.p.DefaultSampleType {
			return i
		}
	}
	return len(f.p.SampleType) - 1
}

// funcKey is a function of the file, or an address without a known function.
type funcKey struct {
	id      uint64
	unnamed bool
	image   image
}

type fileReader struct {
	functions map[funcKey]*profile.Func
	stack     profile.Stack
	sample    profile.Sample
}

func (r *fileReader) read(s *pb.Sample) error {
	r.stack = profile.Stack{Frames: r.stack.Frames[:0]}
	for _, l := range s.Location {
		r.location(l)
		if len(r.stack.Frames) > maxFrames {
			return &Bad{Problem: fmt.Sprintf("a stack of more than %d frames", maxFrames), TooMuch: true}
		}
	}
	r.cutRoot()
	r.sample = profile.Sample{Stack: &r.stack}
	readLabels(&r.sample, s)
	return nil
}

// cutRoot replaces the frame that shows why a stack's root is missing with that reason.
func (r *fileReader) cutRoot() {
	n := len(r.stack.Frames)
	if n == 0 {
		return
	}
	for why := range profile.NumReasons {
		if why != profile.Whole && r.stack.Frames[n-1].Func.Name == truncatedBy(why) {
			r.stack.Frames, r.stack.Truncated = r.stack.Frames[:n-1], why
			return
		}
	}
}

// location makes frames from a location. Code in an image is native: the format has no other kinds.
func (r *fileReader) location(l *pb.Location) {
	kind, in := profile.C2, image{}
	if l.Mapping != nil && l.Mapping.File != "" {
		kind, in = profile.Native, image{l.Mapping.File, l.Mapping.BuildID}
	}
	if len(l.Line) == 0 {
		name := "0x" + strconv.FormatUint(l.Address, 16)
		r.stack.Frames = append(r.stack.Frames, profile.Frame{
			Func: r.function(funcKey{l.Address, true, in}, name, ""), Kind: kind, BCI: -1, PC: l.Address})
	}
	for i := range l.Line {
		line := &l.Line[i]
		f := profile.Frame{Kind: kind, Line: int32(min(max(line.Line, 0), math.MaxInt32)), BCI: -1}
		if i < len(l.Line)-1 {
			f.Kind = profile.Inlined
		} else {
			f.PC = l.Address
		}
		f.Func = r.function(funcKey{line.Function.ID, false, in}, line.Function.Name, line.Function.Filename)
		r.stack.Frames = append(r.stack.Frames, f)
	}
}

func (r *fileReader) function(key funcKey, name, file string) *profile.Func {
	fn := r.functions[key]
	if fn == nil {
		fn = &profile.Func{Name: cmp.Or(name, "[unknown]"), Module: key.image.file, Build: key.image.build, File: file}
		r.functions[key] = fn
	}
	return fn
}
