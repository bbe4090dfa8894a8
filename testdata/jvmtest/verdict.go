//go:build linux

package jvmtest

import (
	"fmt"
	"slices"
	"strings"
)

// WalkedFrame is a Java frame of a walk.
type WalkedFrame struct {
	Method string
	Line   int
	// Top: the frame belongs to the topmost physical frame of compiled Java, or is inlined into it.
	Top bool
	// Inlined: the frame has none of its own.
	Inlined bool
}

// Verdict is how a walk and a thread's shadow agree.
type Verdict uint8

// The closed list of what is allowed, and Mismatch for all else.
const (
	Exact         Verdict = iota
	AtPushOrPop           // the walk has one method more on top, which is just noting that it comes or goes
	OneMore               // the walk has one method more on top: it enters or leaves
	OneLess               // the walk has one method less: an exception takes it away
	InlinedDiffer         // they differ only in what is inlined into the topmost physical frame
	Mismatch
	NumVerdicts
)

var verdictNames = [NumVerdicts]string{"exact", "at push or pop", "one more", "one less", "inlined differ", "MISMATCH"}

func (v Verdict) String() string { return verdictNames[min(v, Mismatch)] }

// A Walk is a walk's Java frames, from the top down. Code are the methods, by their names in the
// shadow, of which the compiled code of the topmost physical frame is made: its own and those that
// are inlined anywhere in it, wherever in it the thread is.
type Walk struct {
	Frames []WalkedFrame
	Code   map[string]bool
}

// keeps reports whether a method is one by which the others keep the shadow, or reach it.
func keeps(method string) bool {
	return strings.HasPrefix(method, "truth.ShadowStack.") ||
		strings.HasPrefix(method, "truth.Shadow$") && strings.HasSuffix(method, ".shadow")
}

// Judge compares a walk with the shadow of the same moment: all methods, and the line of every
// caller. For Mismatch the error tells the first difference from the root.
func (s *Shadow) Judge(shadow []ShadowFrame, walk Walk) (Verdict, error) {
	walked := make([]WalkedFrame, 0, len(walk.Frames))
	keeping := false
	for _, frame := range walk.Frames {
		if name, ok := s.Name(frame.Method); ok {
			frame.Method = name
			walked = append(walked, frame)
		} else if len(walked) == 0 && keeps(frame.Method) {
			keeping = true
		}
	}
	agreed, err := agreeFromRoot(shadow, walked)
	moreShadow, moreWalked := len(shadow)-agreed, len(walked)-agreed
	ends := err == nil // one is the other's beginning
	switch {
	case ends && moreShadow == 0 && moreWalked == 0:
		return Exact, nil
	case ends && moreShadow == 0 && moreWalked == 1 && keeping:
		return AtPushOrPop, nil
	case ends && moreShadow == 0 && moreWalked == 1 && !walked[0].Inlined:
		return OneMore, nil
	case ends && moreShadow == 1 && moreWalked == 0 && len(walked) > 0 && !walk.Frames[0].Top:
		return OneLess, nil
	}
	if len(walked) > 0 && walk.Frames[0].Top && onlyTop(walked[:moreWalked]) {
		foreign := slices.IndexFunc(shadow[:moreShadow], func(f ShadowFrame) bool { return !walk.Code[f.Method] })
		if foreign < 0 {
			return InlinedDiffer, nil
		}
		err = fmt.Errorf("the shadow has %s, which is nowhere inlined in the topmost frame", shadow[foreign].Method)
	}
	if err == nil {
		err = fmt.Errorf("the %d frames at the root agree, then the shadow has %d more and the walk %d",
			agreed, moreShadow, moreWalked)
	}
	return Mismatch, err
}

// agreeFromRoot counts the frames at the root that are the same. The error says what differs in the
// first that are not, and is nil if one side has simply come to its end.
func agreeFromRoot(shadow []ShadowFrame, walked []WalkedFrame) (int, error) {
	for up := range min(len(shadow), len(walked)) {
		want, got := shadow[len(shadow)-1-up], walked[len(walked)-1-up]
		if want.Method != got.Method {
			return up, fmt.Errorf("frame %d from the root is %s, not %s", up+1, got.Method, want.Method)
		}
		// The top method of either side is no caller of a method known to the other.
		isCaller := up+1 < len(shadow) && up+1 < len(walked)
		if isCaller && want.Line != got.Line {
			return up, fmt.Errorf("frame %d from the root: %s is in line %d, not %d", up+1, got.Method, got.Line, want.Line)
		}
	}
	return min(len(shadow), len(walked)), nil
}

// onlyTop: what the walk has beyond the frames that agree, and the caller where it differs, lies
// in the topmost physical frame.
func onlyTop(more []WalkedFrame) bool {
	return !slices.ContainsFunc(more, func(f WalkedFrame) bool { return !f.Top })
}
