package jfr

import (
	"slices"
	"strconv"
	"time"

	"goprof/profile"
)

// JVM is the contents of jdk.JVMInformation. Arguments, flags and properties are never written: they hold passwords.
type JVM struct {
	Name      string // "OpenJDK 64-Bit Server VM"
	Version   string
	MainClass string // or jar, without arguments
	Start     time.Time
	PID       int
}

// CPU is the contents of jdk.CPUInformation.
type CPU struct {
	Type        string // "amd64"
	Description string
	Sockets     int
	Cores       int
	Threads     int
}

// facts hold for the whole recording and are in every chunk. Each of them may be set at any time.
type facts struct {
	parts    []profile.Meta // usually one
	jvm      *JVM
	os       string
	cpu      *CPU
	settings []setting
	config   *Configuration
}

type setting struct {
	event       typeID
	name, value string
}

// SetMeta sets how the recording is made. Call it first, with what is known at the start. It also sets the settings
// that JMC and async-profiler's converter need, such as the period of samples.
func (w *Writer) SetMeta(m profile.Meta) {
	w.facts.parts, w.facts.settings = nil, nil
	w.AddPart(m)
}

// AddPart sets how a further part of the recording is made.
func (w *Writer) AddPart(m profile.Meta) {
	w.facts.parts = append(w.facts.parts, m)
	settings := len(w.facts.settings)
	for _, id := range []typeID{typeExecutionSample, typeNativeMethodSample, typeWallClockSample} {
		wall := id == typeWallClockSample
		told := slices.ContainsFunc(w.facts.settings, func(s setting) bool { return s.event == id })
		if told || wall == (m.Mode == profile.ModeCPU) || m.Interval == 0 { // an event has no interval
			continue
		}
		w.facts.settings = append(w.facts.settings, setting{id, "enabled", "true"},
			setting{id, "period", periodText(m.Interval)})
	}
	w.again(func() { w.facts.writeMeta(w, &m); w.facts.writeSettings(w, settings) })
}

func (w *Writer) SetJVM(jvm JVM) {
	w.facts.jvm = &jvm
	w.again(func() { w.facts.writeJVM(w) })
}

// SetOS sets the description of the operating system, a text of some lines.
func (w *Writer) SetOS(version string) {
	w.facts.os = version
	w.again(func() { w.facts.writeOS(w) })
}

func (w *Writer) SetCPU(cpu CPU) {
	w.facts.cpu = &cpu
	w.again(func() { w.facts.writeCPU(w) })
}

// again writes a fact into the open chunk, if there is one.
func (w *Writer) again(write func()) {
	if w.open && w.err == nil {
		write()
	}
}

// periodText returns an interval as in the JDK's settings: "20 ms".
func periodText(d time.Duration) string {
	units := []struct {
		unit time.Duration
		name string
	}{{time.Second, " s"}, {time.Millisecond, " ms"}, {time.Microsecond, " us"}}
	for _, u := range units {
		if d >= u.unit && d%u.unit == 0 {
			return strconv.FormatInt(int64(d/u.unit), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(d), 10) + " ns"
}

func (f *facts) write(w *Writer) {
	for i := range f.parts {
		f.writeMeta(w, &f.parts[i])
	}
	f.writeSettings(w, 0)
	f.writeJVM(w)
	f.writeOS(w)
	f.writeCPU(w)
	f.writeConfiguration(w)
}

func (f *facts) writeMeta(w *Writer, m *profile.Meta) {
	w.put(typeRecording, w.start.Ticks, m.Version, m.Host, int64(m.PID), m.MainClass, m.JVM, m.Collector, m.Mode, m.Engine,
		m.Interval, weightNames[min(int(m.Weight), len(weightNames)-1)], m.Part)
}

var weightNames = []string{profile.Samples: "samples", profile.CPUTime: "cpu time", profile.WallTime: "wall time",
	profile.Bytes: "bytes"}

func (f *facts) writeSettings(w *Writer, from int) {
	for _, s := range f.settings[from:] {
		w.put(typeActiveSetting, w.start.Ticks, int64(s.event), s.name, s.value)
	}
}

func (f *facts) writeJVM(w *Writer) {
	if f.jvm == nil {
		return
	}
	start := int64(0)
	if !f.jvm.Start.IsZero() {
		start = f.jvm.Start.UnixMilli()
	}
	w.put(typeJVMInformation, w.start.Ticks, f.jvm.Name, f.jvm.Version, "", "", f.jvm.MainClass, start, int64(f.jvm.PID))
}

func (f *facts) writeOS(w *Writer) {
	if f.os != "" {
		w.put(typeOSInformation, w.start.Ticks, f.os)
	}
}

func (f *facts) writeCPU(w *Writer) {
	if c := f.cpu; c != nil {
		w.put(typeCPUInformation, w.start.Ticks, c.Type, c.Description, int32(c.Sockets), int32(c.Cores), int32(c.Threads))
	}
}
