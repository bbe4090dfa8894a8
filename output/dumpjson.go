package output

import (
	"fmt"
	"io"

	"goprof/profile"
)

// These are the fields of "goprof dump --json". What does not apply to a frame is left out:
// native code has no line, an inlined method no level of its own, Java no module.
type (
	jsonDump struct {
		Threads []jsonThread           `json:"threads"`
		Virtual *profile.VirtualCensus `json:"virtual_threads,omitempty"`
	}
	jsonThread struct {
		TID       int         `json:"tid,omitempty"` // none: a virtual thread that no carrier ran
		Name      string      `json:"name"`
		State     string      `json:"state,omitempty"`
		Frames    []jsonFrame `json:"frames"` // from the top down
		Truncated string      `json:"truncated,omitempty"`
		Error     string      `json:"error,omitempty"`
		jsonCarrier
	}
	// jsonCarrier is there where a thread ran a virtual one: that one's are then the frames, and
	// its own are carrier.
	jsonCarrier struct {
		Virtual          *jsonVirtual `json:"virtual,omitempty"`
		Carrier          []jsonFrame  `json:"carrier,omitempty"`
		CarrierTruncated string       `json:"carrier_truncated,omitempty"`
	}
	jsonVirtual struct {
		ID   uint64 `json:"id"` // 0: unknown
		Name string `json:"name"`
	}
	jsonFrame struct {
		Name   string `json:"name"`
		Kind   string `json:"kind"`
		File   string `json:"file,omitempty"`
		Line   int32  `json:"line,omitempty"`
		BCI    *int32 `json:"bci,omitempty"`
		Level  uint8  `json:"level,omitempty"`
		Sure   string `json:"certainty,omitempty"` // "likely" or "guessed", where it is not certain
		Module string `json:"module,omitempty"`
		PC     string `json:"pc,omitempty"` // a string: numbers of JSON readers have 53 bits
		SP     string `json:"sp,omitempty"`
	}
)

// DumpJSON writes one look at all threads as JSON.
func DumpJSON(to io.Writer, threads []profile.ThreadDump) error {
	return DumpVirtualJSON(to, threads, nil)
}

// DumpVirtualJSON is DumpJSON with a count of the virtual threads that are among the threads.
func DumpVirtualJSON(to io.Writer, threads []profile.ThreadDump, census *profile.VirtualCensus) error {
	dump := jsonDump{Threads: make([]jsonThread, 0, len(threads)), Virtual: census}
	for i := range threads {
		dump.Threads = append(dump.Threads, dumpThread(&threads[i]))
	}
	return WriteJSON(to, dump)
}

func dumpThread(t *profile.ThreadDump) jsonThread {
	j := jsonThread{TID: t.TID, Name: t.Name, State: t.State, Error: t.Err}
	stack := t.Stack
	if v := t.Virtual; v != nil {
		j.Virtual = &jsonVirtual{v.ID, v.Name}
	}
	if virtual, carrier, ok := stack.Split(); ok {
		stack = virtual
		j.Virtual = &jsonVirtual{virtual.Virtual.ID, virtual.Virtual.Name}
		j.Carrier, j.CarrierTruncated = dumpFrames(&carrier)
	}
	j.Frames, j.Truncated = dumpFrames(&stack)
	return j
}

func dumpFrames(s *profile.Stack) (frames []jsonFrame, truncated string) {
	frames = make([]jsonFrame, 0, len(s.Frames))
	for i := range s.Frames {
		frames = append(frames, dumpFrame(&s.Frames[i]))
	}
	if s.Truncated != profile.Whole {
		truncated = s.Truncated.String()
	}
	return frames, truncated
}

func dumpFrame(f *profile.Frame) jsonFrame {
	j := jsonFrame{Kind: f.Kind.String(), Level: f.Level, PC: address(f.PC), SP: address(f.SP)}
	if f.Func != nil {
		j.Name, j.Module = f.Func.Name, f.Func.Module
	}
	if f.Sure != profile.Certain {
		j.Sure = f.Sure.String()
	}
	if f.Kind.Java() {
		if f.Func != nil {
			j.File = f.Func.File
		}
		j.Line = max(f.Line, 0)
		if f.BCI >= 0 {
			j.BCI = &f.BCI
		}
	}
	return j
}

func address(a uint64) string {
	if a == 0 {
		return ""
	}
	return fmt.Sprintf("0x%x", a)
}
