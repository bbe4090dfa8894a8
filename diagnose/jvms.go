//go:build linux

package diagnose

import (
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"goprof/process"
	"goprof/process/procfs"
	"goprof/profile"
)

// JVM is what is known of a JVM without disturbing it. All of its text comes from the target, and may hold anything.
type JVM struct {
	PID      int
	InnerPID int // in its own pid namespace; 0 if that is goprof's, too
	// Container is the name of its container: the first digits of the id for Docker and similar runtimes, or the name
	// for LXC and nspawn. It is empty if its cgroup names none.
	Container string
	UID       int
	User      string // the user's name on this host, or the number
	Started   time.Duration
	Uptime    time.Duration
	Threads   int
	CPU       time.Duration // used so far
	Share     float64       // of one CPU, while JVMs measured; 0 if it did not

	Version   string // "17.0.15+6"
	Vendor    string // "Eclipse Adoptium"
	Collector string
	// Main is the main class ("pkg.Main", "module/pkg.Main") or the jar's path.
	Main string
	// Args are the program's arguments and Options the JVM's. They may hold passwords.
	Args, Options []string

	// Problem is why the JVM cannot be recorded, or nil if it can. With a Problem, only facts are known that /proc
	// shows to every user, and Main comes from the command line.
	Problem *Cause
}

// Name returns the JVM's name for users: its main class, or the file name of its jar.
func (j *JVM) Name() string { return profile.ProgramName(j.Main) }

const (
	// lookers is how many processes are examined at a time. lookTimeout limits a look: reading the mappings of a
	// process waits for a lock of its address space, which a process that hangs in the kernel may hold.
	lookers     = 4
	lookTimeout = 3 * time.Second
	// shareTime is the time over which the share of a CPU is measured.
	shareTime = 300 * time.Millisecond
)

// JVMs lists the JVMs of this host that goprof can see, those of other users and in containers included, lowest pid
// first. A JVM that goprof may not read has a Problem.
//
// It reads /proc and the memory of JVMs; no thread is stopped.
func (h Host) JVMs() []JVM {
	began := time.Now()
	found := h.look(h.pids())
	if len(found) > 0 {
		time.Sleep(shareTime - time.Since(began))
	}
	for i := range found {
		h.measure(&found[i])
	}
	return found
}

// Match lists the JVMs whose main class or jar contains part. Case is ignored. Arguments are not compared.
func (h Host) Match(part string) []JVM { return h.match(h.pids(), part) }

func (h Host) match(pids []int, part string) []JVM {
	return slices.DeleteFunc(h.look(pids), func(j JVM) bool { return !j.Fits(part) })
}

// Fits reports whether the main class or jar contains part. Case is ignored.
func (j *JVM) Fits(part string) bool {
	return strings.Contains(strings.ToLower(j.Name()), strings.ToLower(part))
}

// MatchInner lists the JVMs whose main class or jar contains part, and that have the number inner in a pid namespace
// below goprof's. (Each container has a process 1.)
func (h Host) MatchInner(inner int, part string) []JVM {
	var pids []int
	for _, p := range h.insideNamespaces(inner) {
		pids = append(pids, p.pid)
	}
	return h.match(pids, part)
}

// look finds the JVMs among processes.
func (h Host) look(pids []int) []JVM {
	var mu sync.Mutex
	var found []JVM
	var all sync.WaitGroup
	next := make(chan int)
	for range lookers {
		all.Go(func() {
			for pid := range next {
				if jvm, ok := h.lookInTime(pid); ok {
					mu.Lock()
					found = append(found, jvm)
					mu.Unlock()
				}
			}
		})
	}
	for _, pid := range pids {
		next <- pid
	}
	close(next)
	all.Wait()
	sort.Slice(found, func(i, j int) bool { return found[i].PID < found[j].PID })
	return found
}

// hung has the numbers of the processes whose look takes too long. Such a process is not looked at again until that
// look ends. Otherwise code that waits for a JVM would leave behind a goroutine and its files with each look.
var hung sync.Map

// lookInTime looks at a process. It returns false if the look takes too long. The look continues in its goroutine, and
// its result is dropped.
func (h Host) lookInTime(pid int) (JVM, bool) {
	if _, waits := hung.Load(pid); waits {
		return h.hangs(pid)
	}
	return inTime(pid, lookTimeout, func() (JVM, bool) { return h.lookAt(pid) },
		func() (JVM, bool) { return h.hangs(pid) })
}

// inTime returns the result of look, or the result of otherwise if look takes too long.
func inTime(pid int, limit time.Duration, look, otherwise func() (JVM, bool)) (JVM, bool) {
	type result struct {
		jvm JVM
		ok  bool
	}
	var r result
	done := make(chan struct{})
	go func() {
		r.jvm, r.ok = look()
		close(done)
	}()
	if process.InTime(done, limit) {
		return r.jvm, r.ok
	}
	hung.Store(pid, true)
	go func() {
		<-done
		hung.Delete(pid)
	}()
	return otherwise()
}

// hangs reports a process that hangs in the kernel. It reads only stat, which never blocks.
func (h Host) hangs(pid int) (JVM, bool) {
	jvm, comm, ok := h.visible(pid)
	if !ok || comm != "java" {
		return JVM{}, false
	}
	if jvm.Problem = starved(pid); jvm.Problem != nil {
		return jvm, true
	}
	jvm.Problem = &Cause{Name: "hangs", Why: "its memory could not be read in " + lookTimeout.String() +
		": it hangs in the kernel",
		Remedy: "cat /proc/" + itoa(pid) + "/stack"}
	return jvm, true
}

// measure computes the share of a CPU that the JVM has used since the first look.
func (h Host) measure(j *JVM) {
	stat, _, ok := h.stat(j.PID)
	now, up := h.uptime()
	if !ok || !up || procfs.Ticks(stat.Start) != j.Started {
		return
	}
	if passed := now - j.Started - j.Uptime; passed > 0 {
		j.Share = float64(procfs.Ticks(stat.Ticks)-j.CPU) / float64(passed)
	}
}
