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
		Threads []jsonThread `json:"threads"`
	}
	jsonThread struct {
		TID       int         `json:"tid"`
		Name      string      `json:"name"`
		State     string      `json:"state,omitempty"`
		Frames    []jsonFrame `json:"frames"` // from the top down
		Truncated string      `json:"truncated,omitempty"`
		Error     string      `json:"error,omitempty"`
	}
	jsonFrame struct {
		Name   string `json:"name"`
		Kind   string `json:"kind"`
		File   string `json:"file,omitempty"`
		Line   int32  `json:"line,omitempty"`
		BCI    *int32 `json:"bci,omitempty"`
		Level  uint8  `json:"level,omitempty"`
		Module string `json:"module,omitempty"`
		PC     string `json:"pc,omitempty"` // a string: numbers of JSON readers have 53 bits
		SP     string `json:"sp,omitempty"`
	}
)

// DumpJSON writes one look at all threads as JSON.
func DumpJSON(to io.Writer, threads []profile.ThreadDump) error {
	dump := jsonDump{Threads: make([]jsonThread, 0, len(threads))}
	for i := range threads {
		dump.Threads = append(dump.Threads, dumpThread(&threads[i]))
	}
	return WriteJSON(to, dump)
}

func dumpThread(t *profile.ThreadDump) jsonThread {
	j := jsonThread{TID: t.TID, Name: t.Name, State: t.State, Error: t.Err, Frames: make([]jsonFrame, 0, len(t.Stack.Frames))}
	for i := range t.Stack.Frames {
		j.Frames = append(j.Frames, dumpFrame(&t.Stack.Frames[i]))
	}
	if why := t.Stack.Truncated; why != profile.Whole {
		j.Truncated = why.String()
	}
	return j
}

func dumpFrame(f *profile.Frame) jsonFrame {
	j := jsonFrame{Kind: f.Kind.String(), Level: f.Level, PC: address(f.PC), SP: address(f.SP)}
	if f.Func != nil {
		j.Name, j.Module = f.Func.Name, f.Func.Module
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
