package dumps

import (
	"fmt"

	"goprof/output"
	"goprof/profile"
)

// core writes the facts of a core file except its threads. The cause of the end comes first.
func (w *dumpWriter) core(d *profile.Dump) {
	c := d.Core
	if c == nil {
		return
	}
	fmt.Fprintf(w, "core file %s, %s", output.CleanName(c.File), output.Size(uint64(c.Size)))
	if c.Cut > 0 {
		fmt.Fprintf(w, ", cut off: %s are missing", output.Size(c.Cut))
	}
	if c.Tool {
		w.WriteString(", written by a debugger")
	}
	w.WriteByte('\n')
	for _, u := range c.Unproven {
		fmt.Fprintf(w, "NOT PROVEN to be the file that was mapped: %s has no build id; %d %% of what the core has of it "+
			"agree\n", output.CleanName(u.Path), u.Percent)
	}
	if c.HeapUsed > 0 {
		fmt.Fprintf(w, "%s heap: %s used", output.CleanName(c.Collector), output.Size(c.HeapUsed))
		if c.HeapMax > 0 {
			fmt.Fprintf(w, " of at most %s", output.Size(c.HeapMax))
		}
		if c.Collecting {
			w.WriteString("; all threads were stopped for a collection, so a thread may bear another one's name")
		}
		w.WriteByte('\n')
	}
	if c.Signal == nil {
		return
	}
	died := d.Thread(c.Died)
	w.signal("DIED of", c.Signal, c, died)
	if c.Cause != nil {
		w.signal("CAUSE: the JVM had caught", c.Cause, c, died)
	}
}

// signal describes the signal that ended the process, and the frame in which the thread got it.
func (w *dumpWriter) signal(what string, s *profile.Signal, c *profile.Core, died *profile.ThreadDump) {
	fmt.Fprintf(w, "%s %s", what, output.CleanName(s.Name))
	if s.Why != "" {
		fmt.Fprintf(w, " (%s)", output.CleanName(s.Why))
	}
	if s.Sender != 0 {
		fmt.Fprintf(w, " by process %d", s.Sender)
	}
	if s.HasAddr {
		fmt.Fprintf(w, ", address 0x%x: %s", s.Addr, output.CleanName(s.Where))
	}
	fmt.Fprintf(w, "\n  in thread \"%s\" tid=%d, at pc 0x%x", output.CleanName(c.Died.Name), c.Died.TID, s.PC)
	if len(s.Code) > 0 {
		fmt.Fprintf(w, ", code % x", s.Code)
	}
	w.WriteByte('\n')
	if died != nil && s.Frame >= 0 && s.Frame < len(died.Stack.Frames) {
		w.frame(&died.Stack.Frames[s.Frame])
	}
}

// These are the fields of "core" in "goprof dump --core --json".
type (
	jsonCore struct {
		File   string      `json:"file"`
		Size   int64       `json:"size"`
		Cut    uint64      `json:"cut_off,omitempty"` // bytes that are missing
		Tool   bool        `json:"by_debugger,omitempty"`
		Signal *jsonSignal `json:"signal,omitempty"`
		// Cause is the signal that the JVM had caught before it ended itself.
		Cause         *jsonSignal    `json:"cause,omitempty"`
		Died          *jsonThreadRef `json:"died,omitempty"`
		Collector     string         `json:"collector,omitempty"`
		HeapUsed      uint64         `json:"heap_used,omitempty"`
		HeapCommitted uint64         `json:"heap_committed,omitempty"`
		HeapMax       uint64         `json:"heap_max,omitempty"`
		Collecting    bool           `json:"collecting,omitempty"`
		Missing       []jsonCoreFile `json:"missing,omitempty"`
		// Unproven are files that only their content suggests to be the right ones.
		Unproven []jsonUnproven `json:"unproven,omitempty"`
	}
	jsonSignal struct {
		Number  int    `json:"number"`
		Name    string `json:"name"`
		Why     string `json:"why,omitempty"`
		Address string `json:"address,omitempty"`
		Where   string `json:"where,omitempty"`
		PC      string `json:"pc"`
		Code    string `json:"code,omitempty"`  // in hexadecimal digits
		Frame   *int   `json:"frame,omitempty"` // an index into the frames of the dead thread
		Sender  int    `json:"sender,omitempty"`
	}
	jsonUnproven struct {
		Path    string `json:"path"`
		Percent int    `json:"percent"` // how many of the words that the core has from the file agree with the file
	}
	jsonCoreFile struct {
		Path    string `json:"path"`
		BuildID string `json:"build_id,omitempty"`
		Why     string `json:"why"`
	}
)

func coreJSON(c *profile.Core) *jsonCore {
	if c == nil {
		return nil
	}
	j := &jsonCore{File: c.File, Size: c.Size, Cut: c.Cut, Tool: c.Tool, Signal: signalJSON(c.Signal),
		Cause: signalJSON(c.Cause), Collector: c.Collector, HeapUsed: c.HeapUsed, HeapCommitted: c.HeapCommitted,
		HeapMax: c.HeapMax, Collecting: c.Collecting}
	if c.Signal != nil {
		j.Died = new(jsonThreadRef(c.Died))
	}
	for _, m := range c.Missing {
		j.Missing = append(j.Missing, jsonCoreFile(m))
	}
	for _, u := range c.Unproven {
		j.Unproven = append(j.Unproven, jsonUnproven(u))
	}
	return j
}

func signalJSON(s *profile.Signal) *jsonSignal {
	if s == nil {
		return nil
	}
	j := &jsonSignal{Number: s.Number, Name: s.Name, Why: s.Why, Where: s.Where, PC: fmt.Sprintf("0x%x", s.PC),
		Code: fmt.Sprintf("%x", s.Code), Sender: s.Sender}
	if s.HasAddr {
		j.Address = fmt.Sprintf("0x%x", s.Addr)
	}
	if s.Frame >= 0 {
		j.Frame = &s.Frame
	}
	return j
}
