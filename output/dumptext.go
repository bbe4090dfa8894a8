package output

import (
	"bufio"
	"fmt"
	"io"
	"path"

	"goprof/profile"
)

// DumpText writes one look at all threads for people:
//
//	"main" tid=4711 in Java
//	    com.example.Shop.sell        Shop.java:12  c2
//	    __libc_read                  libc.so.6     native
//	    (truncated: reason)
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
	fmt.Fprintf(w, "\"%s\" tid=%d", CleanName(t.Name), t.TID)
	if t.State != "" {
		fmt.Fprintf(w, " %s", CleanName(t.State))
	}
	w.WriteByte('\n')
	if t.Err != "" {
		fmt.Fprintf(w, "    (no stack: %s)\n", CleanName(t.Err))
		return
	}
	for i := range t.Stack.Frames {
		dumpTextFrame(w, &t.Stack.Frames[i])
	}
	if why := t.Stack.Truncated; why != profile.Whole {
		fmt.Fprintf(w, "    (truncated: %s)\n", why)
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
