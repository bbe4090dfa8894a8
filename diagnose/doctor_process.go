//go:build linux

package diagnose

import (
	"cmp"
	"fmt"
	"strings"

	"goprof/process"
	"goprof/process/procfs"
	"goprof/session"
	"goprof/vmstructs"
)

// examineInTime is examineProcess with a time limit.
func (h Host) examineInTime(r *Report, pid int) {
	own, ok := session.OpenInTime(func(opened func(*process.Process)) Report {
		var own Report
		h.examineProcess(&own, pid, opened)
		return own
	})
	if !ok {
		r.fail("process", h.silentCause(pid))
		return
	}
	r.Checks = append(r.Checks, own.Checks...)
	r.Cause = cmp.Or(r.Cause, own.Cause)
}

// examineProcess reports what goprof can read of one process.
func (h Host) examineProcess(r *Report, pid int, opened func(*process.Process)) {
	p, err := process.Open(pid)
	if err != nil {
		r.fail("process", h.Explain(pid, err))
		return
	}
	defer p.Close()
	opened(p)
	h.checkProcess(r, pid)
	h.checkTracer(r, pid)
	vm, err := session.OpenVM(p)
	if err != nil {
		r.fail("JVM", h.Explain(pid, err))
		return
	}
	h.checkVM(r, p, vm)
	h.checkSymbols(r, p, vm)
	h.checkThreads(r, p, vm)
}

func (h Host) checkProcess(r *Report, pid int) {
	status, ok := h.status(pid)
	if !ok {
		r.fail("process", h.explainGone(pid))
		return
	}
	r.ok("process", "%d (%s) of user %s: its memory can be read", pid, status.Name, userName(status.EUID))
	h.checkContainer(r, pid, status)
	if status.State == 'T' {
		r.warn("state", "kill -CONT "+itoa(pid),
			"it is stopped by a signal: it uses no CPU, so there is nothing to record, but goprof dump works")
	}
	if f := procfs.FrozenBy(pid); f != nil && h.Proc == "" {
		r.warn("state", f.Thaw(), "it is %s: no thread runs, so there is nothing to record, but goprof dump works",
			f.Text())
	}
}

// checkContainer names the container of the process, by its pid namespace and its cgroup.
func (h Host) checkContainer(r *Report, pid int, status procfs.Status) {
	var told []string
	if id := h.container(pid); id != "" {
		told = append(told, "it is in container "+id)
	}
	if n := len(status.NSPID); n > 1 {
		told = append(told, fmt.Sprintf("in its own pid namespace it is %d (--ns-pid %[1]d)", status.NSPID[n-1]))
	}
	if len(told) > 0 {
		r.ok("container", "%s; its files are looked up in its own root", strings.Join(told, ", "))
	}
}

// checkTracer: goprof can read a process beside a debugger, but cannot stop a thread that the debugger traces.
func (h Host) checkTracer(r *Report, pid int) {
	tracer := h.tracerOf(pid)
	switch {
	case tracer == 0:
		r.ok("tracer", "no process traces it")
	case h.Traced(pid) != nil:
		r.fail("tracer", h.traced(tracer))
	default:
		r.warn("tracer", h.traced(tracer).Remedy, "process %d traces some of its threads: those have no samples", tracer)
	}
}

func (h Host) checkVM(r *Report, p *process.Process, vm *vmstructs.VM) {
	v := vm.Version()
	name := v.JDK()
	if image, ok := p.Image(vm.Library()); ok {
		if by := vendor(p, image.Path); by != "" {
			name += ", " + by
		}
	}
	if gc := vm.Collector(); gc != "" {
		name += ", " + gc
	}
	if v.Tested() {
		r.ok("JVM", "%s: tested", name)
	} else {
		r.warn("JVM", "goprof record --pid "+itoa(p.PID())+" -d 5s, and see how many stacks are truncated",
			"%s: goprof is tested on %s, and reads this one by the fields that it exports",
			name, releases(vmstructs.TestedReleases()))
	}
	if text := v.Outdated(); text != "" {
		r.info("updates", "", "%s", text)
	}
	checkFields(r, vm.Missing())
}

// checkFields reports what goprof cannot do because fields are missing in the JVM's tables.
func checkFields(r *Report, missing []string) {
	if len(missing) == 0 {
		r.ok("fields", "this JVM exports all that goprof asks for")
	}
	for _, m := range missing {
		r.warn("fields", "", "this JVM does not export what goprof needs for %s", m)
	}
}

func releases(majors []int) string {
	var words []string
	for _, m := range majors {
		words = append(words, fmt.Sprintf("JDK %d", m))
	}
	return strings.Join(words, " and ")
}

func (h Host) checkThreads(r *Report, p *process.Process, vm *vmstructs.VM) {
	all, err := p.Threads()
	if err != nil {
		r.fail("threads", h.Explain(p.PID(), err))
		return
	}
	java, err := vm.Threads()
	if err != nil {
		r.warn("threads", "", "%d, but which are Java's cannot be read: %v", len(all), err)
		return
	}
	r.ok("threads", "%d, of which %d run Java", len(all), len(java))
}
