//go:build linux

package jvmtest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// KindsFlags are the JVM flags with which truth.Kinds shows each kind of frame: compilation in the
// foreground, so that each thread stands in code of the kind that it is named after; hidden
// frames shown, so that stacks can be compared frame by frame.
var KindsFlags = []string{
	"-Xbatch",
	"-XX:CompileCommand=quiet",
	"-XX:CompileCommand=dontinline,truth/Gate.pass",
	"-XX:CompileCommand=exclude,truth/*.interpreted*",
	"-XX:+UnlockDiagnosticVMOptions",
	"-XX:+ShowHiddenFrames",
}

// Special values of ExpectedFrame.Line.
const (
	AnyLine    = -1 // not known
	NativeLine = -2 // a native method
)

// With ShowHiddenFrames a JVM gives code without line numbers, as lambdas' classes are in JDK 8, its
// bytecode index and so much more for a line (classfile/javaClasses.cpp, get_line_number).
const bciAsLine = 1_000_000

// ExpectedFrame is what a program knows of one of its frames.
type ExpectedFrame struct {
	Method string // class.method
	Line   int    // or AnyLine, NativeLine; 0 where the class has no line numbers
}

// ExpectedStack is what a program knows of one of its threads.
type ExpectedStack struct {
	Thread string
	// Parked: the thread stands still and Frames are all its Java frames, from the top down.
	// Else it runs, and Frames are the lowest ones only.
	Parked bool
	Frames []ExpectedFrame
}

// ParseStacks reads the answer of truth.Kinds to "stacks".
func ParseStacks(lines []string) ([]ExpectedStack, error) {
	var stacks []ExpectedStack
	for _, line := range lines {
		if header, ok := strings.CutPrefix(line, "THREAD "); ok {
			name, state, ok := strings.Cut(header, " ")
			if !ok || state != "parked" && state != "spinning" {
				return nil, fmt.Errorf("neither parked nor spinning: %q", line)
			}
			stacks = append(stacks, ExpectedStack{Thread: name, Parked: state == "parked"})
			continue
		}
		frame, err := parseFrame(line)
		if err != nil {
			return nil, err
		}
		if len(stacks) == 0 {
			return nil, fmt.Errorf("a frame without a thread: %q", line)
		}
		last := &stacks[len(stacks)-1]
		last.Frames = append(last.Frames, frame)
	}
	return stacks, nil
}

func parseFrame(text string) (ExpectedFrame, error) {
	colon := strings.LastIndexByte(text, ':')
	if colon < 0 {
		return ExpectedFrame{}, fmt.Errorf("no line number: %q", text)
	}
	frame := ExpectedFrame{Method: text[:colon]}
	switch line := text[colon+1:]; line {
	case "*":
		frame.Line = AnyLine
	case "native":
		frame.Line = NativeLine
	default:
		number, err := strconv.Atoi(line)
		if err != nil {
			return ExpectedFrame{}, fmt.Errorf("bad line number: %q", text)
		}
		if number < bciAsLine {
			frame.Line = number
		}
	}
	return frame, nil
}

// Compare holds the Java frames of a walk, from the top down, against what the program knows, and
// tells the first difference. A walked frame's line is 0 for native methods and where there is none.
func (s ExpectedStack) Compare(walked []ShadowFrame) error {
	if s.Parked && len(walked) != len(s.Frames) {
		return fmt.Errorf("%s: %d Java frames, not %d: %s", s.Thread, len(walked), len(s.Frames), s.firstDifference(walked))
	}
	if len(walked) < len(s.Frames) {
		return fmt.Errorf("%s: only %d Java frames", s.Thread, len(walked))
	}
	lowest := walked[len(walked)-len(s.Frames):]
	for i, want := range s.Frames {
		if !want.matches(lowest[i]) {
			return fmt.Errorf("%s: %s", s.Thread, s.firstDifference(walked))
		}
	}
	return nil
}

// firstDifference is counted from the root, where both are sure to agree longest.
func (s ExpectedStack) firstDifference(walked []ShadowFrame) string {
	for up := 1; up <= len(walked) && up <= len(s.Frames); up++ {
		got, want := walked[len(walked)-up], s.Frames[len(s.Frames)-up]
		if !want.matches(got) {
			return fmt.Sprintf("frame %d from the root is %s:%d, not %s:%d", up, got.Method, got.Line, want.Method, want.Line)
		}
	}
	return fmt.Sprintf("the %d frames at the root agree", min(len(walked), len(s.Frames)))
}

func (f ExpectedFrame) matches(walked ShadowFrame) bool {
	if PlainMethod(f.Method) != PlainMethod(walked.Method) {
		return false
	}
	switch f.Line {
	case AnyLine:
		return true
	case NativeLine:
		return walked.Line <= 0
	default:
		return f.Line == walked.Line
	}
}

// The address that the JVM puts behind the name of a hidden class, before the dot of the method:
// truth.Parked$$Lambda/0x0000000010041450.run, Lambda$14/1364335809.run, or with a "+".
var hiddenAddress = regexp.MustCompile(`[/+](0x)?[0-9a-f]+(\.[^./+]+)$`)

// PlainMethod is a method's name without the address that names of hidden classes carry.
func PlainMethod(name string) string {
	return hiddenAddress.ReplaceAllString(name, "$2")
}
