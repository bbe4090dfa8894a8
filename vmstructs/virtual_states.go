package vmstructs

import "fmt"

// virtualState is the meaning of a constant of VirtualThread.
type virtualState struct {
	constant string
	name     string // as shown by goprof
	mounted  bool   // a carrier runs the thread, or is about to begin or to end running it
}

// Names of states that goprof compares with.
const (
	virtualNew          = "new"
	virtualStarted      = "started"
	virtualParked       = "parked"
	virtualTimedParked  = "timed-parked"
	virtualBlocked      = "blocked"
	virtualWaiting      = "waiting"
	virtualTimedWaiting = "timed-waiting"
	virtualTerminated   = "terminated"
)

// virtualStates are the constants of VirtualThread (java/lang/VirtualThread.java). Their values differ between
// releases, so they are read from the class. A thread passes through WAITING before WAIT, and through PARKING before
// PARKED.
var virtualStates = []virtualState{
	{"NEW", virtualNew, false}, {"STARTED", virtualStarted, false}, {"TERMINATED", virtualTerminated, false},
	{"RUNNABLE", "runnable", false}, {"RUNNING", "running", true},
	{"PARKING", "parking", true}, {"PARKED", virtualParked, false}, {"PINNED", "pinned", true},
	{"TIMED_PARKING", "timed-parking", true}, {"TIMED_PARKED", virtualTimedParked, false},
	{"TIMED_PINNED", "timed-pinned", true}, {"UNPARKED", "unparked", false},
	{"YIELDING", "yielding", true}, {"YIELDED", "yielded", false},
	{"BLOCKING", "blocking", true}, {"BLOCKED", virtualBlocked, false}, {"UNBLOCKED", "unblocked", false},
	{"WAITING", "beginning to wait", true}, {"WAIT", virtualWaiting, false},
	{"TIMED_WAITING", "beginning to wait", true}, {"TIMED_WAIT", virtualTimedWaiting, false},
}

// suspendedFlag is the constant of a bit that VirtualThread may add to a state.
const suspendedFlag = "SUSPENDED"

// stateOf returns the meaning of a value of VirtualThread.state.
func (s *search) stateOf(state uint32) (virtualState, error) {
	if s.states == nil {
		if err := s.readStates(); err != nil {
			return virtualState{}, err
		}
	}
	if is, ok := s.states[state&^s.suspended]; ok {
		return is, nil
	}
	return virtualState{}, fmt.Errorf("%w: state %d of a virtual thread is not known", ErrBadThread, state)
}

// readStates reads the constants from the mirror of VirtualThread. It tries again if the collector moves the mirror.
func (s *search) readStates() error {
	for range virtualTries {
		mirror, fields, err := s.statics(classVirtual)
		if err != nil {
			return err
		}
		found, suspended := map[uint32]virtualState{}, uint32(0)
		for _, is := range append([]virtualState{{constant: suspendedFlag}}, virtualStates...) {
			at, ok := fields[is.constant]
			if !ok {
				continue // this release has no such constant
			}
			v, err := s.c.vm.mem.U32(mirror + at)
			if err != nil {
				return s.c.vm.moved(err)
			}
			if is.constant == suspendedFlag {
				suspended = v
			} else {
				found[v] = is
			}
		}
		if now, _, err := s.statics(classVirtual); err == nil && now == mirror {
			s.states, s.suspended = found, suspended
			return nil
		}
	}
	return ErrMoved
}
