package dumps

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"goprof/output"
	"goprof/profile"
)

// These are the fields of "goprof dump --json". A fact that does not apply to a frame is left out: native code has no
// line, an inlined method has no level of its own, Java has no module.
type (
	jsonDump struct {
		jsonHeader
		*jsonPools
		Core      *jsonCore              `json:"core,omitempty"`
		Threads   []jsonThread           `json:"threads"`
		Groups    []jsonGroup            `json:"groups,omitempty"`
		Deadlocks [][]jsonThreadRef      `json:"deadlocks,omitempty"`
		Virtual   *profile.VirtualCensus `json:"virtual_threads,omitempty"`
	}
	jsonHeader struct {
		Time        *time.Time     `json:"time,omitempty"`
		PID         int            `json:"pid,omitempty"`
		MainClass   string         `json:"main_class,omitempty"`
		VM          string         `json:"vm,omitempty"`
		Version     string         `json:"version,omitempty"`
		Uptime      int64          `json:"uptime_ns,omitempty"`
		Stopped     bool           `json:"stopped,omitempty"` // by a signal
		Frozen      string         `json:"frozen,omitempty"`  // the control group that has frozen it
		JavaThreads int            `json:"java_threads,omitempty"`
		JVMThreads  int            `json:"jvm_threads,omitempty"`
		States      map[string]int `json:"states,omitempty"` // of the Java threads
	}
	jsonThread struct {
		TID       int         `json:"tid,omitempty"` // 0: a virtual thread without a carrier
		Name      string      `json:"name"`
		State     string      `json:"state,omitempty"`
		Java      bool        `json:"java,omitempty"`   // false: a thread of the JVM itself
		System    bool        `json:"system,omitempty"` // true: a thread of the JDK itself
		Daemon    bool        `json:"daemon,omitempty"`
		CPU       int64       `json:"cpu_ns,omitempty"`
		JavaID    int64       `json:"java_id,omitempty"`
		Priority  int         `json:"priority,omitempty"`
		Age       int64       `json:"age_ns,omitempty"`
		Frames    []jsonFrame `json:"frames"` // topmost first
		Truncated string      `json:"truncated,omitempty"`
		Error     string      `json:"error,omitempty"`
		Peer      string      `json:"peer,omitempty"` // the peer of the connection that it waits for
		jsonCarrier
		jsonThreadLocks
	}
	// jsonThreadLocks are the locks that the thread holds, and the one that it waits for. The frame of a lock is an index
	// into frames, continued in carrier.
	jsonThreadLocks struct {
		Holds    []jsonHeld      `json:"holds,omitempty"`
		WaitsFor *jsonDumpedWait `json:"waits_for,omitempty"`
		// Unconfirmed: the thread seems to wait for another thread's lock, but that could not be confirmed.
		Unconfirmed bool `json:"unconfirmed,omitempty"`
	}
	jsonDumpedWait struct {
		jsonLock
		Kind  string         `json:"kind"`
		How   string         `json:"how"` // enter, notify, unpark
		Timed bool           `json:"timed,omitempty"`
		Owner *jsonThreadRef `json:"owner,omitempty"`
	}
	jsonThreadRef struct {
		TID     int    `json:"tid,omitempty"` // 0: a virtual thread without a carrier
		Virtual uint64 `json:"virtual,omitempty"`
		Name    string `json:"name"`
	}
	// jsonGroup is a group of threads with the same stack and state. Facts about single threads are in those threads.
	jsonGroup struct {
		Count int       `json:"count"`
		Names []counted `json:"names"`
		TIDs  []int     `json:"tids,omitempty"`
		jsonThread
	}
	// jsonCarrier is present if the thread ran a virtual thread. Then frames has the virtual thread's frames, and carrier
	// the thread's own.
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
		Sure   string `json:"certainty,omitempty"` // "likely" or "guessed"; absent if it is certain
		Module string `json:"module,omitempty"`
		PC     string `json:"pc,omitempty"` // a string: numbers of some JSON readers have only 53 bits
		SP     string `json:"sp,omitempty"`
		FP     string `json:"fp,omitempty"` // if it is known: native code may use the register for other values
	}
)

// JSON writes a dump of all threads as JSON, thread by thread: a frame takes ten times as much room in JSON as in
// memory, and there may be a million.
func JSON(to io.Writer, d *profile.Dump, shape Shape) error {
	var b bytes.Buffer
	if err := output.WriteJSON(&b, jsonAround(d, shape)); err != nil {
		return err
	}
	const list = "\n  \"threads\": ["
	before, after, ok := strings.Cut(b.String(), list)
	if !ok {
		return errors.New("output: JSON of a dump without its threads")
	}
	w := bufio.NewWriter(to)
	w.WriteString(before + list)
	for i := range d.Threads {
		b.Reset()
		if err := output.WriteJSONAt(&b, dumpThread(&d.Threads[i], shape), "    "); err != nil {
			return err
		}
		if i > 0 {
			w.WriteByte(',')
		}
		w.WriteString("\n    ")
		w.Write(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
	}
	if len(d.Threads) > 0 {
		w.WriteString("\n  ")
	}
	w.WriteString(after)
	return w.Flush()
}

func jsonOf(d *profile.Dump, shape Shape) *jsonDump {
	j := jsonAround(d, shape)
	for i := range d.Threads {
		j.Threads = append(j.Threads, dumpThread(&d.Threads[i], shape))
	}
	return j
}

// jsonAround returns everything except the threads.
func jsonAround(d *profile.Dump, shape Shape) *jsonDump {
	j := &jsonDump{jsonHeader: headerOf(d), jsonPools: poolsJSON(d), Core: coreJSON(d.Core), Threads: []jsonThread{},
		Virtual: d.Virtual}
	if shape.Group {
		for _, g := range groupThreads(d.Threads) {
			j.Groups = append(j.Groups, groupOf(g, shape))
		}
	}
	for _, cycle := range d.Deadlocks {
		refs := make([]jsonThreadRef, 0, len(cycle))
		for _, ref := range cycle {
			refs = append(refs, jsonThreadRef(ref))
		}
		j.Deadlocks = append(j.Deadlocks, refs)
	}
	return j
}

// headerOf describes the process of the dump. It is empty if the dump does not name the process.
func headerOf(d *profile.Dump) (h jsonHeader) {
	if d.PID == 0 {
		return h
	}
	h = jsonHeader{Time: &d.At, PID: d.PID, MainClass: d.MainClass, VM: d.VM, Version: d.Version, Uptime: int64(d.Uptime),
		Stopped: d.Stopped, Frozen: d.Frozen, States: d.States()}
	h.JavaThreads, h.JVMThreads = d.Java()
	return h
}

// groupOf returns the JSON of a group: the facts that all its threads share, and the sum of their CPU times.
func groupOf(g *dumpGroup, shape Shape) jsonGroup {
	j := jsonGroup{Count: len(g.all), Names: g.names(), TIDs: g.tids(), jsonThread: dumpThread(g.ThreadDump, shape)}
	j.Name, j.TID, j.JavaID, j.Age, j.Priority = j.Names[0].Name, 0, 0, 0, 0
	j.Daemon, j.CPU = g.daemons(), int64(g.cpu())
	if len(g.all) > 1 {
		j.Virtual = nil
	}
	return j
}

func dumpThread(t *profile.ThreadDump, shape Shape) jsonThread {
	j := jsonThread{TID: t.TID, Name: t.Name, State: t.State, Java: t.Java, System: t.System, Daemon: t.Daemon,
		CPU: int64(t.CPU), JavaID: t.JavaID, Priority: t.Priority, Age: int64(t.Age), Error: t.Err, Peer: t.Peer,
		jsonThreadLocks: threadLocksJSON(t)}
	stack := t.Stack
	if v := t.Virtual; v != nil {
		j.Virtual = &jsonVirtual{v.ID, v.Name}
	}
	if virtual, carrier, ok := stack.Split(); ok {
		stack = virtual
		j.Virtual = &jsonVirtual{virtual.Virtual.ID, virtual.Virtual.Name}
		j.Carrier, j.CarrierTruncated = dumpFrames(&carrier, shape)
	}
	j.Frames, j.Truncated = dumpFrames(&stack, shape)
	return j
}

func threadLocksJSON(t *profile.ThreadDump) (j jsonThreadLocks) {
	j.Holds, j.Unconfirmed = heldJSON(t), t.Unconfirmed
	if want := t.WaitsFor; want != nil {
		j.WaitsFor = &jsonDumpedWait{jsonLock: lockJSON(&want.Lock), Kind: lockKind(want.Kind),
			How: lockWait(want.How), Timed: want.Timed}
		if want.Owner != (profile.ThreadRef{}) {
			j.WaitsFor.Owner = (*jsonThreadRef)(&want.Owner)
		}
	}
	return j
}

func heldJSON(t *profile.ThreadDump) (list []jsonHeld) {
	for i := range t.Holds {
		h := jsonHeld{jsonLock: lockJSON(&t.Holds[i].Lock), Kind: lockKind(t.Holds[i].Kind)}
		if frame := t.Holds[i].Frame; frame >= 0 && frame < len(t.Stack.Frames) {
			h.Frame = &frame
		}
		list = append(list, h)
	}
	return list
}

func dumpFrames(s *profile.Stack, shape Shape) (frames []jsonFrame, truncated string) {
	frames = make([]jsonFrame, 0, len(s.Frames))
	for i := range shape.shown(s) {
		frames = append(frames, dumpFrame(&s.Frames[i]))
	}
	if s.Truncated != profile.Whole {
		truncated = s.Truncated.String()
	}
	return frames, truncated
}

func dumpFrame(f *profile.Frame) jsonFrame {
	j := jsonFrame{Kind: f.Kind.String(), Level: f.Level, PC: address(f.PC), SP: address(f.SP), FP: address(f.FP)}
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
