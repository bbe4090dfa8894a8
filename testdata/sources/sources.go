// Package sources has recordings for tests of what writes or shows them.
package sources

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"goprof/output/jfr"
	"goprof/output/recording"
	"goprof/profile"
)

// Fake is a recording in memory.
type Fake struct {
	Is       recording.Info
	Samples  []profile.Sample
	AllMarks []recording.Mark
}

// Info and Each make it a recording.Source.
func (f *Fake) Info() recording.Info { return f.Is }

// Each hands out copies that are overwritten, as a real Source may.
func (f *Fake) Each(visit func(*profile.Sample) error) error {
	var s profile.Sample
	var stack profile.Stack
	for i := range f.Samples {
		s = f.Samples[i]
		if s.Stack != nil {
			frames := append(stack.Frames[:0], s.Stack.Frames...)
			stack = *s.Stack
			stack.Frames = frames
			s.Stack = &stack
		}
		if err := visit(&s); err != nil {
			return err
		}
	}
	return nil
}

// Marks makes it recording.Marked.
func (f *Fake) Marks(visit func(recording.Mark) error) error {
	for _, m := range f.AllMarks {
		if err := visit(m); err != nil {
			return err
		}
	}
	return nil
}

// Start is when all of these begin.
var Start = time.Unix(1773500966, 123456789)

// At is a moment of them.
func At(d time.Duration) profile.Instant {
	return profile.Instant{Wall: Start.Add(d).UnixNano(), Ticks: int64(time.Hour + d)}
}

func info(mode string, timed bool) recording.Info {
	i := recording.Info{Name: "shop.jfr", Format: "jfr", Timed: timed, Meta: profile.Meta{
		Version: "1.0", Host: "host", PID: 4711, MainClass: "shop.Main", JVM: "OpenJDK 25", Mode: mode, Engine: "ptrace",
		Start: Start, Duration: time.Second, Interval: time.Millisecond, Weight: profile.CPUTime}}
	if !timed {
		i.Meta.Start, i.Meta.Weight = time.Time{}, profile.Samples
	}
	return i
}

// Functions of all of these.
var (
	Round = &profile.Func{Name: "shop.Price.round", File: "Price.java"}
	Price = &profile.Func{Name: "shop.Price.of", File: "Price.java"}
	Serve = &profile.Func{Name: "shop.Server.serve", File: "Server.java"}
	Park  = &profile.Func{Name: "jdk.internal.misc.Unsafe.park", File: "Unsafe.java"}
	Work  = &profile.Func{Name: "G1ParTask::work(unsigned int)", Module: "/usr/lib/jvm/lib/server/libjvm.so"}
	Write = &profile.Func{Name: "write", Module: "/usr/lib/libc.so.6"}
)

// Threads of all of these.
var (
	Worker  = profile.Thread{TID: 4712, Name: "worker-1", JavaID: 31, JavaName: "worker-1"}
	Main    = profile.Thread{TID: 4711, Name: "java", JavaID: 1, JavaName: "main"}
	GC      = profile.Thread{TID: 4720, Name: "GC Thread#0"}
	Request = profile.Thread{TID: 4730, Name: "ForkJoinPool-1-w", JavaID: 77, JavaName: "request 7", Virtual: true}
)

// JavaStack has two methods inlined into a frame of C2, one of C1 and an interpreted one.
func JavaStack() *profile.Stack {
	return &profile.Stack{Frames: []profile.Frame{
		{Func: Round, Kind: profile.Inlined, Line: 12, BCI: 3},
		{Func: Price, Kind: profile.Inlined, Line: 30, BCI: 7},
		{Func: Serve, Kind: profile.C2, Line: 88, BCI: 9},
		{Func: Serve, Kind: profile.C1, Line: 91, BCI: 9},
		{Func: Serve, Kind: profile.Interpreted, Line: 95, BCI: 1},
	}}
}

// NativeStack is cut.
func NativeStack() *profile.Stack {
	return &profile.Stack{Truncated: profile.NoUnwindInfo, Frames: []profile.Frame{
		{Func: Write, Kind: profile.Native, BCI: -1, PC: 0x7f1000001234},
		{Func: Work, Kind: profile.Native, BCI: -1, PC: 0x7f0000001234},
	}}
}

// CPU is a recording of mode cpu: six samples of four threads, out of order.
func CPU() *Fake {
	const ms = time.Millisecond
	java, native := JavaStack(), NativeStack()
	return &Fake{Is: info(profile.ModeCPU, true), Samples: []profile.Sample{
		{At: At(1 * ms), Thread: Worker, Stack: java, CPU: ms},
		{At: At(3 * ms), Thread: Worker, Stack: native, CPU: ms / 2},
		{At: At(2 * ms), Thread: Worker, Stack: java, CPU: 2 * ms, Count: 2},
		{At: At(5 * ms), Thread: GC, Stack: native, CPU: ms},
		{At: At(4 * ms), Thread: Main, Stack: nil, CPU: ms},
		{At: At(6 * ms), Thread: Request, Stack: java, CPU: 3 * ms},
	}, AllMarks: []recording.Mark{
		{Kind: "gc", Text: "G1 Young", At: At(2 * ms), For: ms},
		{Kind: "safepoint", Text: "<b>Cleanup", At: At(4 * ms)},
	}}
}

// Wall is a recording of mode wall: a thread that works, waits and works, and one whose leaf is its state.
func Wall() *Fake {
	const ms = time.Millisecond
	parked := &profile.Stack{Frames: []profile.Frame{
		{Func: &profile.Func{Name: "[parked]"}, Kind: profile.StateFrame, BCI: -1},
		{Func: Park, Kind: profile.NativeMethod, BCI: -1},
		{Func: Serve, Kind: profile.Interpreted, Line: 95, BCI: 1},
	}}
	return &Fake{Is: info(profile.ModeWall, true), Samples: []profile.Sample{
		{At: At(0), Thread: Worker, Stack: JavaStack(), Wall: true, Span: 10 * ms, CPU: 9 * ms},
		{At: At(10 * ms), Thread: Worker, Stack: JavaStack(), Wall: true, State: profile.Socket, Count: 50, Span: 500 * ms},
		{At: At(510 * ms), Thread: Worker, Stack: JavaStack(), Wall: true, Span: 10 * ms, CPU: 10 * ms},
		{At: At(0), Thread: Request, Stack: parked, Wall: true, State: profile.Parked, Count: 52, Span: 520 * ms},
	}}
}

// Parts is a recording of three parts, all of which are read: that of CPU, waits, and allocations.
func Parts() *Fake {
	const ms = time.Millisecond
	lock := profile.EventKind{Name: "lock", Unit: profile.WallTime}
	alloc := profile.EventKind{Name: profile.EventAlloc, Unit: profile.Bytes}
	f := CPU()
	f.Samples = append(f.Samples,
		profile.Sample{At: At(2 * ms), Thread: Worker, Stack: JavaStack(), Wall: true, State: profile.Blocked,
			Span: 4 * ms, Event: &lock},
		profile.Sample{At: At(3 * ms), Thread: Worker, Stack: JavaStack(), NoState: true, Bytes: 4096, Event: &alloc},
		profile.Sample{At: At(7 * ms), Thread: Main, Stack: JavaStack(), NoState: true, Bytes: 1024, Event: &alloc})
	f.Is.All, f.Is.Earlier = true, map[profile.Thread][]string{Main: {"Thread-0"}}
	for _, kind := range []profile.EventKind{{}, lock, alloc} {
		p := recording.Part{Name: kind.Name, Kind: kind, Meta: f.Is.Meta, Weights: []profile.Weight{kind.Unit}}
		if kind.Name == "" {
			p.Name = profile.ModeCPU
		} else {
			p.Meta.Mode, p.Meta.Weight, p.Meta.Interval = kind.Name, kind.Unit, 0
		}
		f.Is.Parts = append(f.Is.Parts, p)
	}
	return f
}

// Untimed is a recording without times and threads, as a collapsed file is.
func Untimed() *Fake {
	f := &Fake{Is: info("", false), Samples: []profile.Sample{
		{Stack: JavaStack(), Count: 7}, {Stack: NativeStack(), Count: 3}, {Stack: JavaStack(), Count: 1}}}
	f.Is.Format, f.Is.Name, f.Is.Meta.Interval = "collapsed", "shop.collapsed", 0
	return f
}

// Empty has no samples.
func Empty() *Fake { return &Fake{Is: info(profile.ModeCPU, true)} }

// One has one.
func One() *Fake {
	f := CPU()
	f.Samples, f.AllMarks = f.Samples[:1], nil
	return f
}

// Deep has one stack of so many frames.
func Deep(frames int) *Fake {
	f := One()
	s := &profile.Stack{}
	for range frames {
		s.Frames = append(s.Frames, profile.Frame{Func: Serve, Kind: profile.C2, Line: 88})
	}
	f.Samples[0].Stack = s
	return f
}

// Evil is what hostile names try: to end a script, a line, a string or a list, to move a cursor, to be no UTF-8.
const Evil = "</script><img src=x onerror=alert(1)>;\"\\\n\x1b[2J\u202e\u2028\xff\x00{{.}}"

// Hostile has such a name everywhere, and numbers as large as they can be.
func Hostile() *Fake {
	f := CPU()
	fn := &profile.Func{Name: Evil, File: Evil, Module: Evil}
	f.Is.Name, f.Is.Event = Evil, Evil
	f.Is.Meta.Version, f.Is.Meta.MainClass, f.Is.Meta.Host, f.Is.Meta.JVM = Evil, Evil, Evil, Evil
	for i := range 4 {
		f.Samples = append(f.Samples, profile.Sample{At: At(time.Duration(i)), CPU: 1<<63 - 1, Count: 1<<63 - 1,
			Span: 1<<63 - 1, Thread: profile.Thread{TID: 1 << 40, Name: Evil, JavaName: Evil}, Stack: &profile.Stack{
				Truncated: profile.Reason(200), Frames: []profile.Frame{
					{Func: fn, Kind: profile.Kind(i * 60), Line: 1<<31 - 1},
					{Func: &profile.Func{}, Kind: profile.Inlined, Line: -5}}}})
	}
	f.Samples = append(f.Samples, profile.Sample{State: profile.State(99), Wall: true, CPU: -5, Count: -7, Span: -1,
		Bytes: -1, At: profile.Instant{Wall: -1 << 63, Ticks: -1 << 63}},
		profile.Sample{At: profile.Instant{Wall: 1<<63 - 1}})
	f.AllMarks = append(f.AllMarks, recording.Mark{Kind: Evil, Text: Evil, At: At(0), For: 1<<63 - 1},
		recording.Mark{Kind: "", At: profile.Instant{Wall: -1 << 63}, For: -1})
	return f
}

// EvilNames is Hostile with times and numbers that can be.
func EvilNames() *Fake {
	f := Hostile()
	for i := range f.Samples {
		f.Samples[i].At = At(time.Duration(i) * time.Millisecond)
		f.Samples[i].CPU, f.Samples[i].Count, f.Samples[i].Span = time.Millisecond, 1, 0
	}
	for i := range f.AllMarks {
		f.AllMarks[i].At, f.AllMarks[i].For = At(0), time.Millisecond
	}
	return f
}

// Many has so many samples of 40 frames: of 20 threads, 1,000 stacks, a millisecond apart.
func Many(samples int) *Fake {
	f := &Fake{Is: info(profile.ModeCPU, true)}
	var stacks []*profile.Stack
	for i := range 1000 {
		s := &profile.Stack{}
		for d := range 40 {
			depth := 39 - d // those of one root share it
			fn := &profile.Func{Name: fmt.Sprintf("shop.C%d.m%d", depth, i%(depth*depth+1)), File: "C.java"}
			s.Frames = append(s.Frames, profile.Frame{Func: fn, Kind: profile.Kind(d % 4), Line: int32(depth)})
		}
		s.Frames[39].Kind = profile.C2
		stacks = append(stacks, s)
	}
	for i := range samples {
		n := i % 20
		f.Samples = append(f.Samples, profile.Sample{At: At(time.Duration(i) * time.Millisecond), CPU: time.Millisecond,
			Stack:  stacks[i*7919%1000],
			Thread: profile.Thread{TID: 5000 + n, Name: fmt.Sprint("worker-", n), JavaID: int64(n + 10)}})
	}
	return f
}

// JFR is a recording in a JFR file. It stands for the reader that goprof has for all formats, which these packages must
// not need.
type JFR struct {
	Path string
	Wall bool // its wall-clock samples, else those of CPU
}

// Info says what the file's reader need not know.
func (j *JFR) Info() recording.Info {
	i := info(profile.ModeCPU, true)
	if j.Wall {
		i.Meta.Mode = profile.ModeWall
	}
	return i
}

// Each reads the file.
func (j *JFR) Each(visit func(*profile.Sample) error) error {
	file, err := os.Open(j.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		return err
	}
	r := jfr.NewReader(file, st.Size(), nil)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		wall := e.Name == "profiler.WallClockSample"
		if wall != j.Wall || !strings.HasSuffix(e.Name, "Sample") {
			continue
		}
		s := profile.Sample{At: e.At, Thread: e.Thread, Stack: e.Stack, Count: e.Samples, CPU: e.CPU, Wall: wall,
			Span: e.Span}
		s.State, _ = e.ProfileState()
		if err := visit(&s); err != nil {
			return err
		}
	}
}

// ErrBroken is the error of Broken and of FullDisk.
var ErrBroken = errors.New("broken")

// Broken is a recording that cannot be read.
type Broken struct{ *Fake }

// Each fails.
func (Broken) Each(func(*profile.Sample) error) error { return ErrBroken }

// FullDisk takes nothing.
type FullDisk struct{}

// Write fails.
func (FullDisk) Write([]byte) (int, error) { return 0, ErrBroken }
