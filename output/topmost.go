package output

import (
	"strings"

	"goprof/profile"
	"goprof/profile/naming"
)

// topmost is the frame that a stack counts for if its thread waits: the topmost Java method that does more than wait
// (naming.Waits). In a stack without Java, it is the topmost native function that does more than wait.
type topmost struct {
	node int32 // 0: none
	java bool
}

// above returns the topmost frame of a stack with one more frame on top. waits: threads wait in that frame.
func (t topmost) above(node int32, kind LabelKind, waits bool) topmost {
	switch java := kind.Java(); {
	case !java && (t.java || kind != LabelNative && kind != LabelKernel && kind != LabelGap):
		return t
	case java == t.java && waits && t.node != 0:
		return t
	default:
		return topmost{node, java}
	}
}

// waitsIn reports whether threads wait in the frame of a label.
func waitsIn(l Name) bool {
	switch {
	case l.Kind.Java():
		method, _, _ := strings.Cut(l.Text, ":") // in a report by line, a line follows it
		return naming.Waits(method)
	case l.Kind == LabelNative:
		return naming.WaitsNatively(l.Text)
	}
	return false
}

// stateOf returns the state of a leaf, without what the thread waits for, and whether the thread waited. state is empty
// if the leaf is not a state.
func stateOf(leaf Name) (state string, waited bool) {
	if leaf.Kind != LabelState {
		return "", false
	}
	state, _, _ = strings.Cut(strings.Trim(leaf.Text, "[]"), ": ")
	return state, state != profile.Running.String()
}

// Owners returns which node each node of a tree counts for, in a report by a key (by). Most nodes count for themselves.
// By thread, all frames count for their thread. A state counts for its caller, or, if the thread waited, for the
// topmost frame in which threads do more than wait. Frames of a waker count for the wait. By class, package and line,
// native code counts for the Java frame that calls it. Node 0 is the root, and parents come before their children.
func Owners(by string, labels []Name, nodes int, at func(n int32) (parent, label int32)) []int32 {
	waits := make([]bool, len(labels))
	for i, l := range labels {
		waits[i] = waitsIn(l)
	}
	owner, top, waited := make([]int32, nodes), make([]topmost, nodes), make([]bool, nodes)
	for n := int32(1); n < int32(nodes); n++ {
		parent, label := at(n)
		l := labels[label]
		if waited[parent] {
			owner[n], waited[n] = owner[parent], true
			continue
		}
		waited[n] = l.Kind == LabelState
		owner[n], top[n] = n, top[parent].above(n, l.Kind, waits[label])
		if parent == 0 || by == ByState {
			continue
		}
		_, onto := at(owner[parent])
		_, rests := stateOf(l)
		switch {
		case rests && by != ByThread && top[parent].node != 0:
			owner[n] = owner[top[parent].node]
		case by == ByThread, l.Kind == LabelState,
			(by == ByClass || by == ByPackage || by == ByLine) && !l.Kind.Java() && labels[onto].Kind.Java():
			owner[n] = owner[parent]
		}
	}
	return owner
}
