package sampler

import "goprof/target"

// Queue hands snapshots from the sampler to a walker: a fixed number of them goes round.
// When the walker holds all, the sampler finds none free and counts a lost sample
// instead of waiting: a snapshot that is walked late points at what has moved on.
//
// One consumer or more: receive from Snapshots until it is closed, give each back with Done.
type Queue struct {
	free chan *target.Snapshot
	full chan *target.Snapshot
}

// NewQueue makes a queue of n snapshots.
func NewQueue(n int) *Queue {
	q := &Queue{
		free: make(chan *target.Snapshot, n),
		full: make(chan *target.Snapshot, n),
	}
	for range n {
		q.free <- new(target.Snapshot)
	}
	return q
}

// Snapshots delivers what was taken; it is closed when sampling ends.
func (q *Queue) Snapshots() <-chan *target.Snapshot { return q.full }

// Done gives a snapshot back to be filled again.
func (q *Queue) Done(s *target.Snapshot) {
	select {
	case q.free <- s:
	default: // not one of ours
	}
}

func (q *Queue) take() *target.Snapshot {
	select {
	case s := <-q.free:
		return s
	default:
		return nil
	}
}

// put never blocks: there are no more snapshots than places.
func (q *Queue) put(s *target.Snapshot) { q.full <- s }
