package ship

import (
	"context"
	"errors"
	"fmt"
	"time"

	"goprof/profile/batch"
)

// Destination is a server that takes profiles. Its methods are safe for concurrent use.
type Destination interface {
	// Name distinguishes destinations in metrics, in messages, and in the spool. It contains no password: "otlp
	// http://collector:4318".
	Name() string
	// Encode makes a message from a batch. The message has everything that the server needs: after a restart, another
	// goprof may send it.
	Encode(*batch.Batch) ([]byte, error)
	// Send delivers a message. nil: the server has it. After an error that is not a *Failure, the message is sent again.
	Send(ctx context.Context, message []byte) error
}

// Failure says why a message was not taken.
type Failure struct {
	Err error
	// Final: the server will never take it.
	Final bool
	// Doubtful: the message itself may be the reason. It is sent again a few times, and then given up, so that one message
	// cannot block all later ones.
	Doubtful bool
	// After is how long the server asks goprof to wait. It is 0 if the server does not ask.
	After time.Duration
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Final returns a failure after which the message is not sent again.
func Final(format string, args ...any) error {
	return &Failure{Err: fmt.Errorf(format, args...), Final: true}
}

// Partial: the server has taken a message, but not all of its contents.
type Partial struct {
	Rejected int64 // profiles
	Message  string
}

func (p *Partial) Error() string {
	return fmt.Sprintf("the server left %d profiles out: %s", p.Rejected, p.Message)
}

func failureOf(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	return &Failure{Err: err}
}
