package profile

import (
	"fmt"
	"slices"
	"strings"
)

// State is what a thread did, or waited for, at a look. In a wall-clock profile the leaf of each stack is a frame with
// the state's name (kind StateFrame).
type State uint8

const (
	Running  State = iota
	Runnable       // waited for a CPU
	Blocked        // waited to enter a monitor
	Parked         // java.util.concurrent.locks.LockSupport: locks, queues, pools
	Sleeping
	Waiting  // in Object.wait
	Socket   // waited for a socket, or for any of many (a selector)
	File     // waited for a file or a pipe
	InVM     // waited within the JVM: for a safepoint's end, for a class, for work
	InNative // waited in native code, or in another system call
	Stopped  // by a signal, a debugger

	numStates = int(iota)
)

var stateNames = [numStates]string{
	Running: "running", Runnable: "runnable", Blocked: "blocked", Parked: "parked", Sleeping: "sleeping",
	Waiting: "waiting",
	Socket:  "socket", File: "file", InVM: "in VM", InNative: "in native", Stopped: "stopped",
}

func (s State) String() string {
	if int(s) < numStates {
		return stateNames[s]
	}
	return "unknown"
}

// StateNames returns the names of all states as ParseState takes them, without spaces.
func StateNames() []string {
	names := slices.Clone(stateNames[:])
	for i, name := range names {
		names[i] = strings.ToLower(strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// ParseState is the inverse of String. Case does not matter, and a hyphen may replace a space.
func ParseState(name string) (State, error) {
	if s := slices.Index(StateNames(), strings.ReplaceAll(strings.ToLower(name), " ", "-")); s >= 0 {
		return State(s), nil
	}
	return 0, fmt.Errorf("there is no state %q; there are %s", name, strings.Join(StateNames(), ", "))
}

// Label returns the frame for the state: "[parked]", or "[parked: what]" if it is known what the thread waited for.
func (s State) Label(what string) string {
	if what == "" {
		return "[" + s.String() + "]"
	}
	return "[" + s.String() + ": " + what + "]"
}

// IsState reports whether a frame's name is a State's Label.
func IsState(name string) bool {
	inner, ok := strings.CutPrefix(name, "[")
	if inner, ok2 := strings.CutSuffix(inner, "]"); ok && ok2 {
		inner, _, _ = strings.Cut(inner, ": ")
		return slices.Contains(stateNames[:], inner)
	}
	return false
}
