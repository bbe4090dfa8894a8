//go:build linux

package vitals

import (
	"time"

	"goprof/process"
	"goprof/process/procfs"
	"goprof/session"
	"goprof/vmstructs"
)

// Vitals reads the vitals of a process. It has its own access to memory, so one goroutine may use it while others use
// its session.
type Vitals struct {
	s       *session.Session
	p       *process.Process
	dir     *procfs.Dir
	health  *vmstructs.Health
	mounts  []procfs.CgroupMount
	threads map[int]*knownThread
	names   map[uint64]javaName // by JavaThread
	began   uint64              // the start of the process, in ticks since the machine began
	work    bool                // see OnlyWork
}

// Open makes a reader for an attached JVM. Call it on the session's goroutine.
//
// It costs some tens of milliseconds, nearly all of it for libjvm's symbols.
func Open(s *session.Session) (*Vitals, error) {
	v := &Vitals{s: s, p: s.Process, threads: map[int]*knownThread{}}
	var err error
	if v.health, err = session.Ask(s, func() (*vmstructs.Health, error) { return s.VM.NewHealth(), nil }); err != nil {
		return nil, err
	}
	v.dir = procfs.OpenDir(v.p.PID())
	if stat, _, err := procfs.ReadStat(v.p.PID(), v.p.PID()); err == nil {
		v.began = stat.Start
	}
	b, _ := procfs.Read("/proc/self/mountinfo", maxMounts)
	v.mounts = procfs.CgroupMounts(b)
	return v, v.p.Alive()
}

const maxMounts = 4 << 20

// Close closes descriptors. The session stays open.
func (v *Vitals) Close() { v.dir.Close() }

// OnlyWork makes Read return only the work of the process, its threads and its collector. That costs half as much.
func (v *Vitals) OnlyWork() { v.work = true }

// Read reads all facts. It returns an error only if the process has ended, runs another program, or its memory does not
// answer (process.ErrGone, process.ErrSilent). Any other fact that cannot be read is not known. With ErrSilent, the
// result has the kernel's facts.
func (v *Vitals) Read() (*Reading, error) {
	r := &Reading{At: time.Now()}
	v.readKernelThreads(r)
	part, silent := session.Ask(v.s, func() (javaPart, error) { return v.readJava(), nil })
	if silent == nil {
		r.JVM = part.jvm
		v.mergeThreads(r, &part)
	}
	v.readProcess(r)
	if !v.work {
		v.readLimits(r)
		v.readCgroup(&r.Cgroup)
		readMachine(&r.Machine)
	}
	r.Took = time.Since(r.At)
	if silent != nil {
		return r, silent
	}
	return r, v.p.Alive()
}
