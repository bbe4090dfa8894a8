package profile

import (
	"encoding/hex"
	"fmt"
)

// Link is a span of a distributed trace, with the ids of W3C Trace Context. The zero Link is no span.
type Link struct {
	Trace [16]byte
	Span  [8]byte
}

// Known reports whether there is a span.
func (l *Link) Known() bool { return l.Span != [8]byte{} }

// TraceID returns the trace's id in hexadecimal digits. It is empty if it is not known.
func (l *Link) TraceID() string {
	if l.Trace == [16]byte{} {
		return ""
	}
	return hex.EncodeToString(l.Trace[:])
}

// SpanID returns the span's id in hexadecimal digits. It is empty if there is none.
func (l *Link) SpanID() string {
	if !l.Known() {
		return ""
	}
	return hex.EncodeToString(l.Span[:])
}

// ParseLink reads the texts of TraceID and SpanID. For any other text it returns the zero Link.
func ParseLink(trace, span string) (l Link) {
	if len(span) != 2*len(l.Span) || trace != "" && len(trace) != 2*len(l.Trace) {
		return Link{}
	}
	if _, err := hex.Decode(l.Span[:], []byte(span)); err != nil {
		return Link{}
	}
	if _, err := hex.Decode(l.Trace[:], []byte(trace)); err != nil || !l.Known() {
		return Link{}
	}
	return l
}

// Links counts the samples by the outcome of the search for their span. It is nil if the program publishes no spans.
type Links struct {
	// Read: the sample has its span. None: the thread worked for no span.
	Read int64 `json:"read"`
	None int64 `json:"none"`
	// These samples have no span, although their threads may have worked for one. Invalid: the tracing agent was writing
	// the record of the span, or had marked the record as invalid. Half: one of the two ids was missing. Unreadable: the
	// record could not be read. NotStopped: the thread was not stopped, and the kernel has not read the record.
	Invalid    int64 `json:"invalid,omitempty"`
	Half       int64 `json:"half,omitempty"`
	Unreadable int64 `json:"unreadable,omitempty"`
	NotStopped int64 `json:"not_stopped,omitempty"`
}

// String formats these numbers for people.
func (l *Links) String() string {
	text := fmt.Sprintf("%d samples have a span, %d threads worked for none", l.Read, l.None)
	for _, of := range []struct {
		n   int64
		why string
	}{
		{l.Invalid, "the record was not valid"},
		{l.Half, "an id was missing"},
		{l.Unreadable, "the record could not be read"},
		{l.NotStopped, "neither a stop nor the kernel read the record"},
	} {
		if of.n > 0 {
			text += fmt.Sprintf(", %d without: %s", of.n, of.why)
		}
	}
	return text
}
