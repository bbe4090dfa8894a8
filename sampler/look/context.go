package look

// Context is what a tracing agent in the target says of the work that a thread does, by OpenTelemetry's convention
// (OTEP 4947). The thread-local variable ContextVariable is a pointer to a record:
//
//	 0  16  trace id
//	16   8  span id
//	24   1  valid: 1. Any other value says that the record is being written, or says nothing
//	25   1  trace flags
//	26   2  how many bytes of attributes follow
//	28   .  attributes, which goprof does not read
type Context struct {
	State ContextState
	Trace [16]byte
	Span  [8]byte
}

// ContextVariable is the name of the variable.
const ContextVariable = "otel_thread_ctx_v1"

// ContextSize is how much of a record is read, ContextValid where in it the byte valid is.
const (
	ContextSize  = 28
	ContextValid = 24
)

// ContextState is what became of the search for a thread's context.
type ContextState uint8

const (
	ContextUnasked    ContextState = iota // the process publishes none, or it was not looked for
	ContextRead                           // there are a trace id and a span id
	ContextNone                           // the thread has no context at the moment
	ContextInvalid                        // the record says that it is not valid
	ContextHalf                           // only one of the ids is there: the record is torn
	ContextUnreadable                     // the way to the record, or its address, leads nowhere
)

// ParseContext reads a record. A record of which the first bytes are missing is not readable.
func ParseContext(record []byte) (c Context) {
	if len(record) < ContextSize {
		return Context{State: ContextUnreadable}
	}
	copy(c.Trace[:], record)
	copy(c.Span[:], record[16:])
	trace, span := c.Trace != [16]byte{}, c.Span != [8]byte{}
	switch {
	case record[ContextValid] != 1:
		return Context{State: ContextInvalid}
	case !trace && !span:
		return Context{State: ContextNone}
	case !trace || !span:
		return Context{State: ContextHalf}
	}
	c.State = ContextRead
	return c
}
