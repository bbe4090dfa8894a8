//go:build linux

package diagnose

import (
	"path"
	"strconv"
	"strings"

	"goprof/process"
	"goprof/process/procfs"
	"goprof/vmstructs"
)

func itoa(n int) string { return strconv.Itoa(n) }

// lookAt reports whether a process is a JVM, and describes it.
func (h Host) lookAt(pid int) (JVM, bool) {
	jvm, comm, ok := h.visible(pid)
	if !ok {
		return JVM{}, false
	}
	argv := h.commandLine(pid)
	launched := comm == "java" || len(argv) > 0 && path.Base(argv[0]) == "java"
	if jvm.Threads < 2 && !launched {
		return JVM{}, false // a JVM has several threads, most processes have one
	}
	line := parseJavaCommand(argv)
	jvm.Main, jvm.Args, jvm.Options = line.main, line.args, line.options
	libs, readable := h.libraries(pid)
	switch {
	case readable && libs.kind == hotSpot:
		h.lookInto(&jvm, argv)
	case readable && libs.kind == openJ9:
		jvm.Problem = new(h.explainOtherProgram(pid))
	case readable && libs.kind == unknownProgram && h.hasVMThread(pid):
		h.lookInto(&jvm, argv) // its libjvm.so may have another name
		if c := jvm.Problem; c != nil && c.Name == notJava {
			return JVM{}, false
		}
	case readable && launched && libs.launcher:
		jvm.Problem = new(h.Explain(pid, vmstructs.ErrStarting))
	case !readable && (launched || h.hasVMThread(pid)):
		c := h.ExplainForbidden(pid)
		if c.Class == Gone {
			return JVM{}, false
		}
		jvm.Problem = &c
	default:
		return JVM{}, false
	}
	return jvm, true
}

// vmThreadName is HotSpot's name of the thread that executes safepoint operations (runtime/vmThread.cpp). A user
// without access to the mappings of a process still sees the names of its threads.
const vmThreadName = "VM Thread"

// lookInto reads HotSpot's own facts.
func (h Host) lookInto(jvm *JVM, argv []string) {
	p, err := process.Open(jvm.PID)
	if err != nil {
		jvm.Problem = new(h.Explain(jvm.PID, err))
		return
	}
	defer p.Close()
	jvm.Vendor = Vendor(p)
	vm, err := vmstructs.Open(p)
	if err != nil {
		jvm.Problem = new(h.Explain(jvm.PID, err))
		return
	}
	jvm.Version = vm.Version().JDK()
	jvm.Collector = vm.Collector()
	if command := vm.JavaCommand(); command != "" {
		jvm.Main, jvm.Args = splitCommand(command, argv)
		if strings.HasPrefix(jvm.Main, sourceLauncher) && len(jvm.Args) > 0 {
			jvm.Main, jvm.Args = jvm.Args[0], jvm.Args[1:]
		}
	}
	if options := vm.JVMArgs(); options != nil {
		jvm.Options = options
	}
}

// sourceLauncher is the beginning of the names of the classes that run "java Program.java".
const sourceLauncher = "jdk.compiler/com.sun.tools.javac.launcher."

// visible returns what every user may read of a process.
func (h Host) visible(pid int) (jvm JVM, comm string, ok bool) {
	stat, comm, ok := h.stat(pid)
	if !ok || !stat.Alive() || stat.Memory == 0 {
		return JVM{}, "", false // ended, or a thread of the kernel
	}
	status, ok := h.status(pid)
	if !ok || status.TGID != pid {
		return JVM{}, "", false
	}
	jvm = JVM{PID: pid, UID: status.EUID, User: userLogin(status.EUID), Started: procfs.Ticks(stat.Start),
		Threads: stat.Threads, CPU: procfs.Ticks(stat.Ticks)}
	if now, ok := h.uptime(); ok {
		jvm.Uptime = max(0, now-jvm.Started)
	}
	if n := len(status.NSPID); n > 1 {
		jvm.InnerPID = status.NSPID[n-1]
	}
	jvm.Container = h.container(pid)
	return jvm, comm, true
}
