//go:build linux

package oracle

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mixedFrame is a frame of "jhsdb jstack --mixed" (sun.jvm.hotspot.tools.PStack).
type mixedFrame struct {
	pc   uint64 // 0: not told
	java *witnessFrame
	name string // of native code; "<...>" of generated code
}

func (f *mixedFrame) String() string {
	if f.java != nil {
		return fmt.Sprintf("%#x %v", f.pc, f.java)
	}
	return fmt.Sprintf("%#x %s", f.pc, f.name)
}

var (
	mixedThread = regexp.MustCompile(`^-+ (\d+) -+$`)
	mixedAt     = regexp.MustCompile(`^(0x[0-9a-f]+| +)\t(.*)$`)
	mixedJava   = regexp.MustCompile(`^\* ([^(]+)\(.*\) bci:(\d+)(?: line:(\d+))? \((Interpreted|Compiled) frame.*\)$`)
	mixedNative = regexp.MustCompile(` \+ 0x[0-9a-f]+$`)
	mixedOther  = regexp.MustCompile(`^$|^"|^   java.lang.Thread.State: |^   JavaThread state: |^Attaching to ` +
		`|^Debugger attached|^(Server|Client) compiler|^JVM version|^Deadlock Detection:|^No deadlocks`)
)

// mixedThreads reads all stacks, by thread number.
func mixedThreads(text []byte) (map[int][]mixedFrame, error) {
	threads, tid := map[int][]mixedFrame{}, 0
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		line := in.Text()
		if m := mixedThread.FindStringSubmatch(line); m != nil {
			tid, _ = strconv.Atoi(m[1]) // digits; a number too large is no thread of ours
			threads[tid] = nil
		} else if m := mixedAt.FindStringSubmatch(line); m != nil && tid != 0 {
			frame, err := parseMixed(m[1], m[2])
			if err != nil {
				return nil, fmt.Errorf("%q: %w", line, err)
			}
			threads[tid] = append(threads[tid], frame)
		} else if !mixedOther.MatchString(line) {
			return nil, fmt.Errorf("%q: what line is that?", line)
		}
	}
	return threads, in.Err()
}

func parseMixed(pc, rest string) (f mixedFrame, err error) {
	if pc[0] == '0' {
		if f.pc, err = strconv.ParseUint(pc, 0, 64); err != nil {
			return f, err
		}
	}
	if m := mixedJava.FindStringSubmatch(rest); m != nil {
		f.java = &witnessFrame{method: plainHidden(m[1]), code: strings.ToLower(m[4])}
		if f.java.bci, err = strconv.Atoi(m[2]); err == nil && m[3] != "" {
			f.java.line, err = strconv.Atoi(m[3])
		}
		return f, err
	}
	if strings.HasPrefix(rest, "* ") {
		return f, fmt.Errorf("no Java frame")
	}
	f.name = gdbName(mixedNative.ReplaceAllString(rest, ""))
	return f, nil
}

// lost is what the tool shows where it knows nothing of an address.
const lost = "????????"

// mixedCount is how far the mixed stacks reached.
type mixedCount struct {
	java, native, stubs int
	ambiguous           int // Java frames that the tool cannot tell from their neighbours
	lost                int // stacks on which the tool says that it is
	omitted, below      int // ours that it left out between its own, and below its last
}

// difference tells the first mixed frame that a walk does not have, in their order, with its pc,
// name, line and bytecode index. Stacks of this tool have holes: it goes along frame pointers where it
// knows no better, and often ends in libc. So ours that it does not have are only counted. At each
// address it names all Java methods whose frame pointer is the one there (PStack.getJavaNames), and
// compiled code leaves its caller's in place: of Java only interpreted frames with an address are
// compared. Its plain form tells the others, too.
func (c *mixedCount) difference(mixed []mixedFrame, ours *dumpedThread, alias func(module, a, b string) bool) string {
	if why := notWhole(ours); why != "" {
		return why
	}
	at := 0
	for i := range mixed {
		m := &mixed[i]
		if m.name == lost {
			c.lost++
			break
		}
		if m.java != nil && (m.pc == 0 || m.java.code != "interpreted") {
			c.ambiguous++
			continue
		}
		n := slices.IndexFunc(ours.Frames[at:], func(f dumpedFrame) bool { return m.is(&f, alias) })
		if n < 0 {
			return fmt.Sprintf("frame %d, %v, is not in the walk, or not below frame %d", i, m, at)
		}
		c.omitted += n
		at += n + 1
		switch {
		case m.java != nil:
			c.java++
		case strings.HasPrefix(m.name, "<"):
			c.stubs++
		default:
			c.native++
		}
	}
	c.below += len(ours.Frames) - at
	return ""
}

func (f *mixedFrame) is(ours *dumpedFrame, alias func(module, a, b string) bool) bool {
	if f.pc != address(ours.PC) {
		return false
	}
	switch {
	case f.java != nil:
		return ours.isJava() && frameDifference(f.java, ours) == ""
	case strings.HasPrefix(f.name, "<"):
		return ours.Kind == "stub"
	}
	return ours.Kind == "native" && (f.name == ours.Name || alias(ours.Module, f.name, ours.Name))
}

// hearMixed compares the stacks of all threads with "jhsdb jstack --mixed".
func hearMixed(text []byte, ours []dumpedThread, alias func(module, a, b string) bool) (*hearing, error) {
	theirs, err := mixedThreads(text)
	if err != nil {
		return nil, err
	}
	h, count, agree := &hearing{against: map[int]string{}}, mixedCount{}, 0
	for i := range ours {
		th := &ours[i]
		mixed, ok := theirs[th.TID]
		delete(theirs, th.TID)
		if !ok || len(mixed) == 0 {
			h.against[th.TID] = "the witness has no frame of it"
		} else if why := count.difference(mixed, th, alias); why != "" {
			h.against[th.TID] = why
		} else {
			agree++
		}
	}
	for tid := range theirs {
		h.against[tid] = "it is not in the dump"
	}
	h.told = fmt.Sprintf("%d threads agree, %d Java frames, %d native, %d of generated code; "+
		"of the witness %d not compared, %d stacks on which it is lost; left out by it: %d between, %d below",
		agree, count.java, count.native, count.stubs, count.ambiguous, count.lost, count.omitted, count.below)
	return h, nil
}
