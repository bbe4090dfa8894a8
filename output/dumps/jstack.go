package dumps

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"goprof/output"
	"goprof/profile"
)

// Jstack writes a dump of all threads in the layout of HotSpot's own thread dumps, which fastThread, jstall, TDA,
// IntelliJ and others read (runtime/threads.cpp, Threads::print_on; javaThread.cpp, JavaThread::print_on; vframe.cpp,
// javaVFrame::print_lock_info_on). Such a dump has only Java frames.
//
// It leaves out what goprof does not know: how the JVM runs ("mixed mode"), the list of threads after "SMR info", the
// number of JNI references, the address of the JVM's record of a thread that cannot run Java, the modules of classes,
// the address of a monitor in a deadlock. It also leaves out virtual threads without a carrier, because the layout has
// no place for their stacks.
func Jstack(to io.Writer, d *profile.Dump) error {
	w := jstackWriter{bufio.NewWriter(to)}
	fmt.Fprintf(w, "%s\nFull thread dump %s (%s):\n\n", d.At.Format(time.DateTime),
		output.Printable(cmp.Or(d.VM, "OpenJDK 64-Bit Server VM")), output.Printable(cmp.Or(d.Version, "?")))
	for i := range d.Threads {
		t := &d.Threads[i]
		if t.TID == 0 {
			continue
		}
		w.title(t)
		w.body(t)
		w.WriteByte('\n')
	}
	w.deadlocks(d)
	return w.Flush()
}

type jstackWriter struct{ *bufio.Writer }

// title writes the first line of a thread:
//
//	"main" #1 daemon prio=5 os_prio=0 cpu=34.57ms elapsed=2.29s tid=0x00007f72c8017ea0 nid=0x542e runnable  [0x00007f72cedfe000]
//
// nid is the thread's number, as goprof shows it elsewhere, but in hexadecimal, as up to JDK 18.
func (w jstackWriter) title(t *profile.ThreadDump) {
	fmt.Fprintf(w, "\"%s\"", jstackName(t.Name))
	if t.JavaID > 0 {
		fmt.Fprintf(w, " #%d", t.JavaID)
	}
	if t.Daemon {
		w.WriteString(" daemon")
	}
	if t.Priority > 0 {
		fmt.Fprintf(w, " prio=%d", t.Priority)
	}
	fmt.Fprintf(w, " os_prio=%d cpu=%.2fms", t.Nice, float64(t.CPU)/float64(time.Millisecond))
	if t.Age > 0 {
		fmt.Fprintf(w, " elapsed=%.2fs", t.Age.Seconds())
	}
	if t.Address != 0 {
		fmt.Fprintf(w, " tid=0x%016x", t.Address)
	}
	fmt.Fprintf(w, " nid=0x%x %s  ", t.TID, jstackDoing(t))
	if t.Address != 0 { // the page of the stack pointer at the topmost Java frame
		sp := uint64(0)
		if i := firstJava(&t.Stack); i >= 0 {
			sp = t.Stack.Frames[i].SP
		}
		fmt.Fprintf(w, "[0x%016x]", sp&^0xfff)
	}
	w.WriteByte('\n')
}

// jstackStates are Thread.State and the text after it, for each of goprof's states
// (java_lang_Thread::thread_status_name).
var jstackStates = map[string]string{
	"NEW": "NEW", "RUNNABLE": "RUNNABLE", "TERMINATED": "TERMINATED", "BLOCKED": "BLOCKED (on object monitor)",
	"WAITING": "WAITING (on object monitor)", "TIMED_WAITING": "TIMED_WAITING (on object monitor)",
	"PARKED": "WAITING (parking)", "TIMED_PARKED": "TIMED_WAITING (parking)", "SLEEPING": "TIMED_WAITING (sleeping)",
}

// jstackDoing returns what the JVM's record of an OS thread would show (OSThread::print_on).
func jstackDoing(t *profile.ThreadDump) string {
	switch t.State {
	case "BLOCKED":
		return "waiting for monitor entry"
	case "WAITING", "TIMED_WAITING":
		return "in Object.wait()"
	case "RUNNABLE", "NEW", "running", "in Java", "in VM":
		return "runnable"
	}
	if strings.HasPrefix(t.State, compiling) {
		return "runnable"
	}
	return "waiting on condition"
}

// compiling begins the state of a compiler thread that is compiling.
const compiling = "compiling "

func (w jstackWriter) body(t *profile.ThreadDump) {
	state := jstackStates[t.State]
	what, compiles := strings.CutPrefix(t.State, compiling)
	if compiles {
		state = "RUNNABLE"
	}
	if state != "" {
		fmt.Fprintf(w, "   java.lang.Thread.State: %s\n", state)
	}
	if compiles {
		fmt.Fprintf(w, "   Compiling: %s\n", output.Printable(what))
	}
	if t.Err != "" {
		fmt.Fprintf(w, "   (no stack: %s)\n", output.Printable(t.Err))
	}
	w.stacks(t)
	w.synchronizers(t)
}

// stacks writes a thread's Java frames. The frames of a virtual thread that it carries come after its own, as they do
// since JDK 24.
func (w jstackWriter) stacks(t *profile.ThreadDump) {
	locks := jstackLocks(t)
	virtual, carrier, ok := t.Stack.Split()
	if !ok {
		w.frames(&t.Stack, 0, locks)
		return
	}
	id := virtualNumber(virtual.Virtual)
	fmt.Fprintf(w, "   Carrying virtual thread #%s\n", id)
	w.frames(&carrier, len(virtual.Frames), locks)
	fmt.Fprintf(w, "   Mounted virtual thread #%s\n", id)
	w.frames(&virtual, 0, locks)
}

func (w jstackWriter) frames(s *profile.Stack, first int, locks map[int][]string) {
	for i := range s.Frames {
		f := &s.Frames[i]
		if f.Kind.Java() && f.Func != nil {
			fmt.Fprintf(w, "\tat %s(%s)\n", output.Printable(f.Func.Name), jstackPlace(f))
		}
		for _, lock := range locks[first+i] {
			fmt.Fprintf(w, "\t- %s\n", lock)
		}
	}
	if s.Truncated != profile.Whole {
		fmt.Fprintf(w, "   (truncated: %s)\n", s.Truncated)
	}
}

func jstackPlace(f *profile.Frame) string {
	switch {
	case f.Kind == profile.NativeMethod:
		return "Native Method"
	case f.Func.File == "":
		return "Unknown Source"
	case f.Line > 0:
		return fmt.Sprintf("%s:%d", output.Printable(f.Func.File), f.Line)
	}
	return output.Printable(f.Func.File)
}

// jstackLocks returns a thread's monitors, and the lock that it waits for, by frame. A lock without an identity cannot
// be shown.
func jstackLocks(t *profile.ThreadDump) map[int][]string {
	locks := map[int][]string{}
	top := firstJava(&t.Stack)
	if want := t.WaitsFor; want != nil && top >= 0 {
		switch {
		case want.Kind == profile.ClassInit:
			locks[top] = append(locks[top], waitVerbs[want.How]+output.Printable(cmp.Or(want.Class, "?")))
		case want.ID != 0:
			locks[top] = append(locks[top], waitVerbs[want.How]+jstackLock(&want.Lock))
		case want.How == profile.ToNotify:
			locks[top] = append(locks[top], "waiting on <no object reference available>")
		}
	}
	for i := range t.Holds {
		if h := &t.Holds[i]; h.Kind == profile.Monitor && h.ID != 0 && h.Frame >= 0 {
			locks[h.Frame] = append(locks[h.Frame], "locked "+jstackLock(&h.Lock))
		}
	}
	return locks
}

func jstackLock(l *profile.Lock) string {
	return fmt.Sprintf("<0x%016x> (a %s)", l.ID, output.Printable(cmp.Or(l.Class, "?")))
}

// synchronizers writes the locks of java.util.concurrent that the thread holds exclusively, as jstack -l shows them.
func (w jstackWriter) synchronizers(t *profile.ThreadDump) {
	title := "\n   Locked ownable synchronizers:\n"
	for i := range t.Holds {
		if h := &t.Holds[i]; h.Kind == profile.Exclusive && h.ID != 0 {
			fmt.Fprintf(w, "%s\t- %s\n", title, jstackLock(&h.Lock))
			title = ""
		}
	}
}

// deadlocks writes the deadlocks, which come after the threads (services/threadService.cpp,
// DeadlockCycle::print_on_with).
func (w jstackWriter) deadlocks(d *profile.Dump) {
	found := 0
	for _, cycle := range d.Deadlocks {
		threads := make([]*profile.ThreadDump, 0, len(cycle))
		for _, ref := range cycle {
			if t := d.Thread(ref); t != nil && t.WaitsFor != nil {
				threads = append(threads, t)
			}
		}
		if len(threads) != len(cycle) || len(cycle) == 0 {
			continue
		}
		found++
		w.deadlock(threads)
	}
	if found > 0 {
		fmt.Fprintf(w, "Found %s.\n\n", output.Count(found, "deadlock"))
	}
}

func (w jstackWriter) deadlock(threads []*profile.ThreadDump) {
	fmt.Fprintf(w, "\nFound one Java-level deadlock:\n=============================\n")
	for _, t := range threads {
		want := t.WaitsFor
		fmt.Fprintf(w, "\"%s\":\n", jstackName(t.Name))
		switch want.Kind {
		case profile.Monitor:
			fmt.Fprintf(w, "  waiting to lock monitor (object 0x%016x, a %s),\n", want.ID, output.Printable(want.Class))
		case profile.ClassInit:
			fmt.Fprintf(w, "  waiting on the Class initialization monitor for %s,\n", output.Printable(want.Class))
		default:
			fmt.Fprintf(w, "  waiting for ownable synchronizer 0x%016x, (a %s),\n", want.ID, output.Printable(want.Class))
		}
		fmt.Fprintf(w, "  which is held by \"%s\"\n\n", jstackName(want.Owner.Name))
	}
	w.WriteString("Java stack information for the threads listed above:\n")
	w.WriteString("===================================================\n")
	for _, t := range threads {
		fmt.Fprintf(w, "\"%s\":\n", jstackName(t.Name))
		w.stacks(t)
	}
	w.WriteByte('\n')
}

// jstackName returns a thread's name without quotes: for readers, a quote ends the name.
func jstackName(s string) string { return strings.ReplaceAll(output.Printable(s), `"`, "'") }
