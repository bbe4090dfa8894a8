package otlp

import (
	"path"
	"strconv"
	"strings"

	"goprof/output"
	"goprof/profile"
	"goprof/profile/protobuf"
)

// maxName bounds the name of a function, file or thread.
const maxName = 64 << 10

// clean returns a name as in goprof's own files, so that it is the same everywhere.
func clean(name string) string { return output.CleanName(name[:min(len(name), maxName)]) }

func (e *encoder) stack(s *profile.Stack) int32 {
	e.locations = e.locations[:0]
	for from := 0; from < len(s.Frames); {
		to := from
		for to < len(s.Frames)-1 && s.Frames[to].Kind == profile.Inlined {
			to++
		}
		e.locations = append(e.locations, e.location(s.Frames[from:to+1]))
		from = to + 1
	}
	if s.Truncated != profile.Whole {
		why := profile.Frame{Func: &profile.Func{Name: "[truncated: " + s.Truncated.String() + "]"}, Kind: profile.Gap}
		e.locations = append(e.locations, e.location([]profile.Frame{why}))
	}
	return e.dict.add(stackTable, protobuf.Packed(nil, 1, e.locations))
}

// location adds a physical frame to the dictionary, with the methods inlined into it, and returns its index. frames
// begins with the innermost inlined method, and ends with the physical frame. A physical frame without a name gets no
// line if the build id of its image is known: a server with the image's symbols names it by its address.
func (e *encoder) location(frames []profile.Frame) int32 {
	physical := &frames[len(frames)-1]
	fn := physical.Func
	address, nameless := uint64(0), false
	var entry []byte
	if !physical.Kind.Java() && fn.Module != "" {
		entry = protobuf.Uint(entry, 1, uint64(e.mapping(fn)))
		address, nameless = offsetIn(fn)
		entry = protobuf.Uint(entry, 2, address)
	}
	for i := range frames {
		if nameless && fn.Build != "" && i == len(frames)-1 {
			break
		}
		entry = protobuf.Bytes(entry, 3, e.lineOf(&frames[i]))
	}
	if t := frameType(physical.Kind); t != "" {
		entry = protobuf.Packed(entry, 4, []int32{e.dict.attribute("profile.frame.type", textValue(t))})
	}
	return e.dict.add(locationTable, entry)
}

func (e *encoder) lineOf(f *profile.Frame) []byte {
	b := protobuf.Uint(nil, 1, uint64(e.function(f.Func)))
	return protobuf.Uint(b, 2, uint64(max(f.Line, 0)))
}

func (e *encoder) function(fn *profile.Func) int32 {
	if i, known := e.functions[fn]; known {
		return i
	}
	name := e.dict.text(clean(fn.Name))
	b := protobuf.Uint(nil, 1, uint64(name))
	b = protobuf.Uint(b, 2, uint64(name))
	b = protobuf.Uint(b, 3, uint64(e.dict.text(clean(fn.File))))
	i := e.dict.add(functionTable, b)
	e.functions[fn] = i
	return i
}

// mapping returns the index of an image. Its addresses begin at 0: the addresses of its locations are offsets in the
// image, not in memory.
func (e *encoder) mapping(fn *profile.Func) int32 {
	b := protobuf.Uint(nil, 4, uint64(e.dict.text(clean(fn.Module))))
	if fn.Build != "" {
		build := e.dict.attribute("process.executable.build_id.gnu", textValue(clean(fn.Build)))
		b = protobuf.Packed(b, 5, []int32{build})
	}
	return e.dict.add(mappingTable, b)
}

// offsetIn returns the address within the image for a function without a name, such as lib.so+0x1f.
func offsetIn(fn *profile.Func) (address uint64, nameless bool) {
	digits, ok := strings.CutPrefix(fn.Name, path.Base(fn.Module)+"+0x")
	if !ok {
		return 0, false
	}
	address, err := strconv.ParseUint(digits, 16, 64)
	return address, err == nil
}

// frameType returns the profile.frame.type of OpenTelemetry's conventions. It is empty for frames that are not code.
func frameType(k profile.Kind) string {
	switch {
	case k == profile.StateFrame || k == profile.Gap:
		return ""
	case k == profile.Kernel:
		return "kernel"
	case k == profile.Native:
		return "native"
	}
	return "jvm"
}
