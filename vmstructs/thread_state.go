package vmstructs

import "fmt"

// ThreadState is JavaThreadState (utilities/globalDefinitions.hpp), the VM's state of a thread. The numbers are those
// of the VM up to 27. An odd number is a transition from the state before it to another.
type ThreadState int32

const (
	StateNew      ThreadState = 2
	StateInNative ThreadState = 4
	StateInVM     ThreadState = 6
	StateInJava   ThreadState = 8
	StateBlocked  ThreadState = 10

	// otherState is added to a number without a state.
	otherState ThreadState = 1 << 16
)

func (s ThreadState) String() string {
	name := ""
	switch s &^ 1 {
	case StateNew:
		name = "new"
	case StateInNative:
		name = "in native"
	case StateInVM:
		name = "in VM"
	case StateInJava:
		name = "in Java"
	case StateBlocked: // for a lock, a time, a safepoint or anything else (_thread_blocked)
		name = "waiting"
	default:
		return fmt.Sprintf("state %d", int32(s&^otherState))
	}
	if s&1 != 0 {
		name += " transition"
	}
	return name
}

// stateNumbers maps a JVM's numbers of states, because 28 has other numbers, and no transitions. It is nil if the
// numbers are those of ThreadState.
type stateNumbers map[int32]ThreadState

func (r *resolver) stateNumbers() stateNumbers {
	own, same := stateNumbers{}, true
	for name, state := range map[string]ThreadState{"_thread_new": StateNew, "_thread_in_native": StateInNative,
		"_thread_in_vm": StateInVM, "_thread_in_Java": StateInJava, "_thread_blocked": StateBlocked} {
		number := r.int(name, int32(state))
		own[number] = state
		same = same && number == int32(state)
	}
	if same {
		return nil
	}
	return own
}

// of returns the state for one of the JVM's numbers.
func (n stateNumbers) of(number int32) ThreadState {
	if n == nil {
		return ThreadState(number)
	}
	if state, ok := n[number]; ok {
		return state
	}
	return ThreadState(number) | otherState
}
