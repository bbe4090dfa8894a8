package output

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"strconv"

	"goprof/profile"
)

// DumpText writes one look at all threads for people:
//
//	"main" tid=4711 in Java
//	    com.example.Shop.sell        Shop.java:12  c2
//	    __libc_read                  libc.so.6     native
//	    (truncated: reason)
//
//	"ForkJoinPool-1-worker-1" tid=4720 RUNNABLE
//	  virtual thread #31 "order 17"
//	    com.example.Shop.sell        Shop.java:12  c2
//	  its carrier
//	    jdk.internal.vm.Continuation.enterSpecial ...
func DumpText(to io.Writer, threads []profile.ThreadDump) error {
	w := bufio.NewWriter(to)
	for i := range threads {
		if i > 0 {
			w.WriteByte('\n')
		}
		dumpTextThread(w, &threads[i])
	}
	return w.Flush()
}

func dumpTextThread(w *bufio.Writer, t *profile.ThreadDump) {
	if t.Virtual != nil {
		w.WriteString(virtualTitle(*t.Virtual))
	} else {
		fmt.Fprintf(w, "\"%s\" tid=%d", CleanName(t.Name), t.TID)
	}
	if t.State != "" {
		fmt.Fprintf(w, " %s", CleanName(t.State))
	}
	w.WriteByte('\n')
	if t.Err != "" {
		fmt.Fprintf(w, "    (no stack: %s)\n", CleanName(t.Err))
		return
	}
	virtual, carrier, ok := t.Stack.Split()
	if !ok {
		dumpTextStack(w, &t.Stack)
		return
	}
	fmt.Fprintf(w, "  %s\n", virtualTitle(virtual.Virtual))
	dumpTextStack(w, &virtual)
	if len(carrier.Frames) > 0 {
		w.WriteString("  its carrier\n")
		dumpTextStack(w, &carrier)
	}
}

// virtualTitle is how a virtual thread is called in text.
func virtualTitle(v profile.VirtualThread) string {
	id := "?"
	if v.ID != 0 {
		id = strconv.FormatUint(v.ID, 10)
	}
	if v.Name == "" {
		return "virtual thread #" + id
	}
	return fmt.Sprintf("virtual thread #%s \"%s\"", id, CleanName(v.Name))
}

func dumpTextStack(w *bufio.Writer, s *profile.Stack) {
	for i := range s.Frames {
		dumpTextFrame(w, &s.Frames[i])
	}
	if s.Truncated != profile.Whole {
		fmt.Fprintf(w, "    (truncated: %s)\n", s.Truncated)
	}
}

func dumpTextFrame(w *bufio.Writer, f *profile.Frame) {
	fn := f.Func
	if fn == nil {
		fn = &profile.Func{}
	}
	fmt.Fprintf(w, "    %-60s %-28s %s\n", CleanName(fn.Name), place(f, fn), f.Kind)
}

// place is where a frame is: source file and line of Java, the library of native code.
func place(f *profile.Frame, fn *profile.Func) string {
	switch {
	case f.Kind == profile.NativeMethod:
		return "-"
	case f.Kind.Java() && f.Line > 0 && fn.File != "":
		return fmt.Sprintf("%s:%d", CleanName(fn.File), f.Line)
	case f.Kind.Java() && f.Line > 0:
		return fmt.Sprintf("line %d", f.Line)
	case f.Kind.Java() && f.BCI >= 0:
		return fmt.Sprintf("bytecode %d", f.BCI)
	case fn.Module != "":
		return CleanName(path.Base(fn.Module))
	}
	return "-"
}
