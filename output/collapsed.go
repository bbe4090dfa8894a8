package output

import (
	"bufio"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"goprof/profile"
)

// Collapsed writes a profile as lines
//
//	root;caller;...;leaf count
//
// one for each different stack, sorted by their bytes. The format has no room for anything else, and other tools fail
// on comment lines. So a recording's summary has a file of its own (see SummaryPath).
//
// # Frames
//
// Java methods are pkg.Class.method with a suffix, which flame graph tools use for colours. async-profiler writes the
// same suffixes, and FlameGraph's "--colors java" knows them:
//
//	_[j]  compiled by C2, and native methods (their wrappers are compiled code)
//	_[1]  compiled by C1
//	_[0]  interpreted
//	_[i]  inlined into the frame below
//	_[k]  the kernel's code, in recordings of others
//
// Native functions and stubs have no suffix. Frames in brackets have none either; they are not code:
//
//	[name tid=N]            the thread, if stacks are kept apart by thread
//	[name virtual #N]       or the virtual thread; #? if it is not known which one
//	[truncated: reason]     the stack does not reach its thread's root
//	[parked], [running] ... what the thread did or waited for, the leaf in wall-clock modes (profile.State)
//	[parked: class]         and for what, in mode off-cpu
//	[woken by], [woken by: timer (interrupt)], [not woken: reason]   the frames above are those of what ended the wait
//	[no unwind info: lib]   native code that could not be unwound lies here
//	[reflection] ...        frames that only pass calls on, if they are hidden: see package naming
//
// # Names
//
// In names ';' becomes ','. These become '?': control characters (including line breaks), characters that change the
// direction of text, and bytes that are not UTF-8. If a name without a suffix happens to end in one, its '[' becomes
// '('.
func Collapsed(to io.Writer, p *profile.Profile) error {
	w := bufio.NewWriterSize(to, 64<<10)
	var digits [20]byte
	p.Settled().EachLine(Label, func(path []string, n int64) {
		for i, name := range path {
			if i > 0 {
				w.WriteByte(';')
			}
			w.WriteString(name)
		}
		w.WriteByte(' ')
		w.Write(strconv.AppendInt(digits[:0], n, 10))
		w.WriteByte('\n')
	})
	return w.Flush() // a bufio.Writer remembers its first error
}

// The suffixes of Java frames.
const (
	suffixCompiled    = "_[j]"
	suffixC1          = "_[1]"
	suffixInterpreted = "_[0]"
	suffixInlined     = "_[i]"
	suffixKernel      = "_[k]" // in files of other tools
)

func suffixOf(k profile.Kind) string {
	switch k {
	case profile.C2, profile.NativeMethod:
		return suffixCompiled
	case profile.C1:
		return suffixC1
	case profile.Interpreted:
		return suffixInterpreted
	case profile.Inlined:
		return suffixInlined
	case profile.Kernel:
		return suffixKernel
	}
	return ""
}

// Label returns a function's name in a collapsed file.
func Label(f *profile.Func, k profile.Kind) string {
	name := CleanName(f.Name)
	if s := suffixOf(k); s != "" {
		return name + s
	}
	if _, s := cutSuffix(name); s != "" {
		return strings.TrimSuffix(name, s) + "_(" + s[2:]
	}
	return name
}

// cutSuffix splits a label into name and suffix. The suffix is empty if there is none.
func cutSuffix(label string) (name, suffix string) {
	if n := len(label) - len(suffixCompiled); n > 0 && label[n:n+2] == "_[" && label[n+3] == ']' {
		switch label[n+2] {
		case 'j', '1', '0', 'i', 'k':
			return label[:n], label[n:]
		}
	}
	return label, ""
}

// CleanName makes a name from the target fit for a line of text.
func CleanName(name string) string {
	if name == "" {
		return "[unknown]"
	}
	if isClean(name) {
		return name
	}
	var b strings.Builder
	for _, r := range name { // bytes that are not UTF-8 come as RuneError
		switch {
		case r == ';':
			r = ','
		case r == utf8.RuneError || Unsafe(r):
			r = '?'
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isClean(name string) bool {
	for i := range len(name) {
		if c := name[i]; c == ';' || c < ' ' || c > '~' {
			return false
		}
	}
	return true
}
