package dumps

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"goprof/output"
	"goprof/profile"
	"goprof/profile/naming"
)

// Shape sets how much of a dump is shown, and how.
type Shape struct {
	Native bool // include the native frames below Java with which the JVM starts a thread
	Group  bool // show threads with the same stack and state once
	Pools  bool // show pools in place of threads, in text
}

// Text writes a dump of all threads for people:
//
//	2026-11-22 22:10:03 UTC  pid 4711  com.example.Shop  OpenJDK 64-Bit Server VM 17.0.15+6  up 3m12s
//	25 Java threads: 14 PARKED, 8 RUNNABLE, 3 BLOCKED; 12 of the JVM's own
//
//	"main" tid=4711 RUNNABLE cpu=1.23s
//	    com.example.Shop.sell        Shop.java:12  c2
//	      - waiting to lock <0x69ec1a8f0> (a java.lang.Object), held by "worker" tid=4713
//	    __libc_read                  libc.so.6     native
//	    (truncated: reason)
//
//	"ForkJoinPool-1-worker-1" tid=4720 RUNNABLE daemon cpu=3ms
//	  virtual thread #31 "order 17"
//	    com.example.Shop.sell        Shop.java:12  c2
//	  its carrier
//	    jdk.internal.vm.Continuation.enterSpecial ...
func Text(to io.Writer, d *profile.Dump, shape Shape) error {
	w := dumpWriter{Writer: bufio.NewWriter(to), shape: shape}
	w.header(d)
	w.core(d)
	w.deadlocks(d)
	if shape.Pools && d.Pools != nil {
		w.pools(d)
		return w.Flush()
	}
	if shape.Group {
		w.groups(d.Threads)
		return w.Flush()
	}
	for i := range d.Threads {
		t := &d.Threads[i]
		if t.Died {
			w.begin(profile.Died)
		} else {
			w.begin(t.Part())
		}
		w.title(t)
		w.thread(t)
	}
	return w.Flush()
}

type dumpWriter struct {
	*bufio.Writer
	shape Shape
	began bool             // something has been written
	part  profile.DumpPart // the part of the last written thread
}

// header writes which process the dump is of. If the dump does not name it, header writes nothing.
func (w *dumpWriter) header(d *profile.Dump) {
	if d.PID == 0 {
		return
	}
	w.began = true
	fmt.Fprintf(w, "%s  pid %d  %s", d.At.Format("2006-01-02 15:04:05 MST"), d.PID,
		output.CleanName(cmp.Or(d.MainClass, "?")))
	if d.VM != "" {
		fmt.Fprintf(w, "  %s", output.CleanName(d.VM))
	}
	if d.Version != "" {
		fmt.Fprintf(w, " %s", output.CleanName(d.Version))
	}
	if d.Uptime > 0 {
		fmt.Fprintf(w, "  up %s", output.Uptime(d.Uptime))
	}
	w.WriteByte('\n')
	if note := d.StoppedNote(); note != "" {
		fmt.Fprintln(w, output.Printable(note))
	}
	java, own := d.Java()
	w.WriteString(output.Count(java, "Java thread"))
	separator := ": "
	for _, s := range ordered(d.States()) {
		fmt.Fprintf(w, "%s%d %s", separator, s.Count, output.CleanName(cmp.Or(s.Name, "?")))
		separator = ", "
	}
	fmt.Fprintf(w, "; %d of the JVM's own\n", own)
	if n := profile.Unconfirmed(d.Threads); n > 0 {
		seem := "seem"
		if n == 1 {
			seem = "seems"
		}
		fmt.Fprintf(w, "%s %s to wait for locks of others, which could not be confirmed: "+
			"a deadlock of theirs would be missing\n", output.Count(n, "thread"), seem)
	}
}

// partTitles are the titles of the parts of a dump that are not the application's.
var partTitles = map[profile.DumpPart]string{
	profile.Died:      "the thread that died",
	profile.JDK:       "the JDK's own threads",
	profile.Unmounted: "virtual threads that no carrier ran",
	profile.JVM:       "the JVM's own threads",
}

// begin begins a thread, and also its part if that is new.
func (w *dumpWriter) begin(part profile.DumpPart) {
	if w.began {
		w.WriteByte('\n')
	}
	title := partTitles[part]
	if w.part == profile.Died && part != profile.Died {
		title = cmp.Or(title, "the others")
	}
	if title != "" && part != w.part && w.began {
		fmt.Fprintf(w, "--- %s\n\n", title)
	}
	w.began, w.part = true, part
}

// title writes the first line of a thread.
func (w *dumpWriter) title(t *profile.ThreadDump) {
	if t.Virtual != nil {
		w.WriteString(virtualTitle(*t.Virtual))
	} else {
		fmt.Fprintf(w, "\"%s\" tid=%d", output.CleanName(t.Name), t.TID)
	}
	w.facts(t.State, t.Daemon, t.CPU)
}

func (w *dumpWriter) facts(state string, daemon bool, cpu time.Duration) {
	if state != "" {
		fmt.Fprintf(w, " %s", output.CleanName(state))
	}
	if daemon {
		w.WriteString(" daemon")
	}
	if cpu > 0 {
		fmt.Fprintf(w, " cpu=%s", output.Round(cpu))
	}
	w.WriteByte('\n')
}

// thread writes the lines after the first line.
func (w *dumpWriter) thread(t *profile.ThreadDump) {
	if t.Err != "" {
		fmt.Fprintf(w, "    (no stack: %s)\n", output.CleanName(t.Err))
	}
	locks := locksOf(t)
	w.locks(locks.above)
	virtual, carrier, ok := t.Stack.Split()
	if !ok {
		w.stack(&t.Stack, 0, locks)
	} else {
		fmt.Fprintf(w, "  %s\n", virtualTitle(virtual.Virtual))
		w.stack(&virtual, 0, locks)
		if len(carrier.Frames) > 0 {
			w.WriteString("  its carrier\n")
			w.stack(&carrier, len(virtual.Frames), locks)
		}
	}
	w.locks(locks.below)
}

func virtualTitle(v profile.VirtualThread) string {
	if v.Name == "" {
		return "virtual thread #" + virtualNumber(v)
	}
	return fmt.Sprintf("virtual thread #%s \"%s\"", virtualNumber(v), output.CleanName(v.Name))
}

func virtualNumber(v profile.VirtualThread) string {
	if v.ID == 0 {
		return "?"
	}
	return strconv.FormatUint(v.ID, 10)
}

// stack writes frames. first is the index of s's first frame in the thread's whole stack.
func (w *dumpWriter) stack(s *profile.Stack, first int, locks *threadLocks) {
	for i := range w.shape.shown(s) {
		w.frame(&s.Frames[i])
		w.locks(locks.at[first+i])
	}
	if s.Truncated != profile.Whole {
		fmt.Fprintf(w, "    (truncated: %s)\n", s.Truncated)
	}
}

func (shape *Shape) shown(s *profile.Stack) int {
	if shape.Native {
		return len(s.Frames)
	}
	return len(s.Frames) - naming.WayIntoJava(s)
}

func (w *dumpWriter) frame(f *profile.Frame) {
	fn := f.Func
	if fn == nil {
		fn = &profile.Func{}
	}
	fmt.Fprintf(w, "    %-60s %-28s %s\n", output.CleanName(fn.Name), place(f, fn), f.Kind)
}

func (w *dumpWriter) locks(locks []string) {
	for _, text := range locks {
		fmt.Fprintf(w, "      - %s\n", text)
	}
}

// deadlocks writes the deadlocks, which come before all threads: a user with a deadlock looks for nothing else.
func (w *dumpWriter) deadlocks(d *profile.Dump) {
	for _, cycle := range d.Deadlocks {
		if len(cycle) == 0 {
			continue
		}
		var names []string
		for _, ref := range cycle {
			names = append(names, refText(&ref))
		}
		last := names[0]
		if len(names) == 1 {
			last = "itself"
		}
		fmt.Fprintf(w, "DEADLOCK: %s waits for %s\n", strings.Join(names, " waits for "), last)
	}
}

// place returns a Java frame's source file and line, or the library of native code.
func place(f *profile.Frame, fn *profile.Func) string {
	switch {
	case f.Kind == profile.NativeMethod:
		return "-"
	case f.Kind.Java() && f.Line > 0 && fn.File != "":
		return fmt.Sprintf("%s:%d", output.CleanName(fn.File), f.Line)
	case f.Kind.Java() && f.Line > 0:
		return fmt.Sprintf("line %d", f.Line)
	case f.Kind.Java() && f.BCI >= 0:
		return fmt.Sprintf("bytecode %d", f.BCI)
	case fn.Module != "":
		return output.CleanName(path.Base(fn.Module))
	}
	return "-"
}
