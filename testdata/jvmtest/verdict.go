//go:build linux

package jvmtest

import "fmt"

// WalkedFrame is a Java frame of a walk.
type WalkedFrame struct {
	Method string
	Line   int
	// Top: the frame belongs to the topmost physical frame of compiled Java, or is inlined into it.
	Top bool
}

// Verdict is how a walk and a thread's shadow agree.
type Verdict uint8

// The closed list of what is allowed, and Mismatch for all else.
const (
	Exact         Verdict = iota
	OneMore               // the walk has one method more on top: it enters or leaves
	OneLess               // the walk has one method less: an exception takes it away
	InlinedDiffer         // they differ only in what is inlined into the topmost physical frame
	Mismatch
	NumVerdicts
)

var verdictNames = [NumVerdicts]string{"exact", "one more", "one less", "inlined differ", "MISMATCH"}

func (v Verdict) String() string { return verdictNames[min(v, Mismatch)] }

// Judge compares a walk, from the top down, with the shadow of the same moment: all methods, and
// the line of every caller. For Mismatch the error tells the first difference from the root.
func (s *Shadow) Judge(shadow []ShadowFrame, walk []WalkedFrame) (Verdict, error) {
	walked := make([]WalkedFrame, 0, len(walk))
	for _, frame := range walk {
		if name, ok := s.Name(frame.Method); ok {
			walked = append(walked, WalkedFrame{name, frame.Line, frame.Top})
		}
	}
	agreed, err := agreeFromRoot(shadow, walked)
	moreShadow, moreWalked := len(shadow)-agreed, len(walked)-agreed
	switch {
	case err == nil && moreShadow == 0 && moreWalked == 0:
		return Exact, nil
	case err == nil && moreShadow == 0 && moreWalked == 1:
		return OneMore, nil
	case err == nil && moreShadow == 1 && moreWalked == 0:
		return OneLess, nil
	case onlyTop(walked, moreWalked):
		return InlinedDiffer, nil
	case err == nil:
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

// onlyTop: what the walk has beyond the frames that agree, and the caller where it
// differs, lies in the topmost physical frame.
func onlyTop(walked []WalkedFrame, more int) bool {
	for _, frame := range walked[:more] {
		if !frame.Top {
			return false
		}
	}
	// Where the walk has nothing more, its top must be the one into which the rest was inlined.
	return len(walked) > 0 && (more > 0 || walked[0].Top)
}
