//go:build linux

package oracle

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"goprof/profile"
)

// witnessThread is a Java thread as another tool tells it.
type witnessThread struct {
	tid     int
	name    string
	frames  []witnessFrame
	mounted int // of them, those on top are of the virtual thread that it carries
}

// witnessFrame is one Java frame as another tool tells it. What it does not tell is left out.
type witnessFrame struct {
	method string // pkg.Class.method
	file   string // empty: not told
	line   int    // 0: none
	bci    int    // noBCI: not told
	code   string // "interpreted" or "compiled"; empty: not told
}

const noBCI = -1

func (f *witnessFrame) String() string {
	s := fmt.Sprintf("%s:%d", f.method, f.line)
	if f.bci != noBCI {
		s += fmt.Sprintf(" bci %d", f.bci)
	}
	return strings.Join(strings.Fields(s+" "+f.file+" "+f.code), " ")
}

// hiddenName is how tools part the name of a hidden class from its address: inside the JVM it is
// Name+0x0000000081044ab0, for Class.getName and so in a thread dump Name/0x0000000081044ab0.
var hiddenName = regexp.MustCompile(`[/+](0x[0-9a-f]+)`)

// In JDK 8 the thread dump adds a hash, which the JVM itself has not: Name/381259350.
var hashedName = regexp.MustCompile(`/\d+\.`)

func plainHidden(method string) string {
	return hashedName.ReplaceAllString(hiddenName.ReplaceAllString(method, "+$1"), ".")
}

// witnessText reads the text of a tool line by line. A line that it does not know is an error:
// nothing that a witness says is overlooked.
type witnessText struct {
	header  *regexp.Regexp // name, and the thread's number in one of the other groups
	mounted string         // begins a line: from here on the frames are those of the virtual thread on top
	frame   func(line string) (witnessFrame, bool, error)
	ignored *regexp.Regexp
}

func (w *witnessText) threads(r io.Reader) ([]witnessThread, error) {
	var all []witnessThread
	var last *witnessThread
	mounted := false
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		line := in.Text()
		if m := w.header.FindStringSubmatch(line); m != nil {
			tid, err := strconv.ParseInt(strings.Join(m[2:], ""), 0, 32)
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			all = append(all, witnessThread{tid: int(tid), name: m[1]})
			last, mounted = &all[len(all)-1], false
			continue
		}
		if w.mounted != "" && strings.HasPrefix(line, w.mounted) && last != nil {
			mounted = true
			continue
		}
		frame, ok, err := w.frame(line)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%q: %w", line, err)
		case ok && last == nil:
			return nil, fmt.Errorf("%q: a frame of no thread", line)
		case ok && mounted:
			last.frames = slices.Insert(last.frames, last.mounted, frame)
			last.mounted++
		case ok:
			last.frames = append(last.frames, frame)
		case !w.ignored.MatchString(line):
			return nil, fmt.Errorf("%q: what line is that?", line)
		}
	}
	return all, in.Err()
}

// threadPrint reads "jcmd PID Thread.print -l" (HotSpot: JavaThread::print_on, javaVFrame::print_lock_info_on).
// The JVM's own threads have no "#", and no Java frames. A carrier has no nid=, and its number in brackets only.
var threadPrint = witnessText{
	header:  regexp.MustCompile(`^"(.*)" #\d+ (?:.*\bnid=(0x[0-9a-f]+|\d+) |\[(\d+)\] (?:[^n]|n[^i])*$)`),
	mounted: "   Mounted virtual thread #",
	frame:   threadPrintFrame,
	ignored: regexp.MustCompile(`^$|^\d+:$|^\d{4}-\d\d-\d\d |^Full thread dump |^ +JDK version: |^Threads class SMR info:` +
		`|^_java_thread_list=|^(0x[0-9a-f]+,? ?)+$|^}$|^   java.lang.Thread.State: ` +
		`|^   (No compile task|Compiling: .*|Carrying virtual thread #\d+)$|^   Locked ownable synchronizers:$|^\t- |^"[^"]*" os_prio=.*|^JNI global ref(s|erences): `),
}

// A method's place: Thread.java:840, java.base@17.0.15/Thread.java:840, java.base@17.0.15/Native Method,
// java.base@17.0.15/LambdaForm$MH (a file, but no line), Unknown Source.
var threadPrintAt = regexp.MustCompile(`^\tat (\S+)\((?:[\w.]+(?:@[^/()]+)?/)?([^()]+)\)$`)

// noLineOf8 and more is what JDK 8 tells of a method without lines (javaVFrame::print_on): the bytecode's index and a
// million.
const noLineOf8 = 1_000_000

func threadPrintFrame(line string) (f witnessFrame, ok bool, err error) {
	m := threadPrintAt.FindStringSubmatch(line)
	if m == nil {
		return f, false, nil
	}
	f = witnessFrame{method: plainHidden(m[1]), bci: noBCI}
	switch place := m[2]; place {
	case "Native Method", "Unknown Source":
	default:
		file, number, numbered := strings.Cut(place, ":")
		f.file = file
		if numbered {
			f.line, err = strconv.Atoi(number)
		}
		if f.line >= noLineOf8 {
			f.line = 0
		}
	}
	return f, true, err
}

// jstack reads "jhsdb jstack" (sun.jvm.hotspot.tools.StackTrace).
var jstack = witnessText{
	header: regexp.MustCompile(`^"(.*)" #\d+ .*\bnid=(0x[0-9a-f]+|\d+) `),
	frame:  jstackFrame,
	ignored: regexp.MustCompile(`^$|^Attaching to process ID |^Debugger attached successfully` +
		`|^(Server|Client) compiler detected|^JVM version is |^Deadlock Detection:|^No deadlocks found|^   java.lang.Thread.State: |^   JavaThread state: |^\t- `),
}

// jstackAt: " - Class.method(types) @bci=1, line=2 (Compiled frame; information may be imprecise)".
var jstackAt = regexp.MustCompile(`^ - ([^(]+)\(.*\) @bci=(\d+)(?:, line=(\d+))? ` +
	`\((Interpreted|Compiled) frame( \[deoptimized\])?(; information may be imprecise)?\)$`)

func jstackFrame(line string) (f witnessFrame, ok bool, err error) {
	m := jstackAt.FindStringSubmatch(line)
	if m == nil {
		return f, false, nil
	}
	f = witnessFrame{method: plainHidden(m[1]), code: strings.ToLower(m[4])}
	if f.bci, err = strconv.Atoi(m[2]); err == nil && m[3] != "" {
		f.line, err = strconv.Atoi(m[3])
	}
	return f, true, err
}

// enterSpecial is the one method that is on a stack and in no thread dump: the native method between
// the frames of a virtual thread and those of its carrier.
const enterSpecial = "jdk.internal.vm.Continuation.enterSpecial"

// javaDifference tells the first frame in which a witness and a walk differ; empty if they agree.
// Compared are the number of frames and of each frame class, method, line and, where the witness
// tells them, file, bytecode index, and whether it is compiled. Of a virtual thread that has been
// thawed in part the walk has the frames that are on the carrier's stack.
func javaDifference(w *witnessThread, ours *dumpedThread) string {
	if w.name != ours.Name {
		return fmt.Sprintf("it is called %q, not %q", w.name, ours.Name)
	}
	thawed := ours.Truncated == profile.Continuation.String() && w.mounted > 0
	if why := notWhole(ours); why != "" && !thawed {
		return why
	}
	var java []dumpedFrame
	for i := range ours.Frames {
		if ours.Frames[i].isJava() {
			java = append(java, ours.Frames[i])
		}
	}
	if w.mounted > 0 && w.mounted < len(java) && java[w.mounted].Name == enterSpecial &&
		java[w.mounted].Kind == "native-method" {
		java = slices.Delete(java, w.mounted, w.mounted+1)
	}
	for i := range min(len(java), len(w.frames)) {
		if why := frameDifference(&w.frames[i], &java[i]); why != "" {
			return fmt.Sprintf("Java frame %d: %s", i, why)
		}
	}
	if thawed {
		if len(java) > 0 && len(java) < w.mounted {
			return ""
		}
		return fmt.Sprintf("%d Java frames, the rest of %d in the heap", len(java), w.mounted)
	}
	if len(java) != len(w.frames) {
		return fmt.Sprintf("%d Java frames, the witness has %d", len(java), len(w.frames))
	}
	return ""
}

// notWhole says why a walk is none to compare.
func notWhole(ours *dumpedThread) string {
	if ours.Error == "" && ours.Truncated == "" && len(ours.Frames) > 0 {
		return ""
	}
	return fmt.Sprintf("%d frames, truncated %q, error %q", len(ours.Frames), ours.Truncated, ours.Error)
}

func frameDifference(w *witnessFrame, f *dumpedFrame) string {
	isNative := f.Kind == "native-method"
	differs := plainHidden(f.Name) != w.method || f.Line != w.line ||
		w.file != "" && f.File != w.file ||
		w.bci > 0 && (f.BCI == nil || *f.BCI != w.bci) ||
		w.bci == 0 && f.BCI != nil && *f.BCI != 0 ||
		w.code != "" && !isNative && (f.Kind == "interpreted") != (w.code == "interpreted")
	if !differs {
		return ""
	}
	bci := "none"
	if f.BCI != nil {
		bci = strconv.Itoa(*f.BCI)
	}
	return fmt.Sprintf("%s %s:%d %s bci %s, the witness says %v", f.Kind, f.Name, f.Line, f.File, bci, w)
}
