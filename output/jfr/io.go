package jfr

import (
	"math"

	"goprof/profile"
)

// Calls that read and write have the JDK's types if the JDK's recorder has such events. Others are goprof.IOCall. Each
// event is one call, with its own time and bytes. Of short calls only some are in the file, drawn by lot. So additional
// fields say how many calls an event stands for. goprof.IOSum has the kernel's counts of all calls.

const ioCallName = "goprof.IOCall"

// IOTypes are the types of events that are such calls, and what these do; of goprof.IOCall a field tells that.
var IOTypes = map[string]profile.IOOp{"jdk.FileRead": profile.IORead, "jdk.FileWrite": profile.IOWrite,
	"jdk.FileForce": profile.IOForce, "jdk.SocketRead": profile.IORead, "jdk.SocketWrite": profile.IOWrite,
	ioCallName: profile.NumIOOp}

var (
	filePath     = value("path", typeString, "Path")
	host         = value("host", typeString, "Host")
	address      = value("address", typeString, "Address")
	port         = value("port", typeInt, "Port")
	bytesRead    = fieldDef{name: "bytesRead", typ: typeLong, label: "Bytes Read", as: byteCount}
	bytesWritten = fieldDef{name: "bytesWritten", typ: typeLong, label: "Bytes Written", as: byteCount}
)

// ioEvent is a type of such events. The last field is the number that its samples stand for.
func ioEvent(id typeID, name, label string, fields ...fieldDef) typeDef {
	return event(id, name, label, "", []string{"Java Application"}, append(append([]fieldDef{
		{name: "duration", typ: typeLong, label: "Duration", as: tickSpan},
		ref("eventThread", typeThread, "Event Thread"),
		ref("stackTrace", typeStackTrace, "Stack Trace")}, fields...),
		hitCount, span("timeSpan", "Time It Stands For"))...)
}

// ioType returns the type for a call. Only files and peers have types of the JDK's.
func ioType(c *profile.IOCall) typeID {
	switch {
	case c.Failed: // the JDK has none for these
	case c.Target.Kind == profile.IOFile && c.Op <= profile.IOForce:
		return typeFileRead + typeID(c.Op)
	case (c.Target.Kind == profile.IOPeer || c.Target.Kind == profile.IOClient) && c.Op <= profile.IOWrite:
		return typeSocketRead + typeID(c.Op)
	}
	return typeIOCall
}

// call writes a call. The time of its event is that of the call's beginning.
func (w *Writer) call(s *profile.Sample) error {
	if err := s.Read(); err != nil {
		return err
	}
	c, code := s.IO, profile.Stack{}
	if s.Stack != nil {
		code = *s.Stack
	}
	if s.About && len(code.Frames) > 0 { // its fields say it
		code.Frames = code.Frames[1:]
	}
	thread, trace := w.pools.thread(&s.Thread), w.pools.stack(&code)
	typ := ioType(c)
	took := max(int64(c.Took), 0)
	w.event(typ, s.At.Ticks-took)
	w.numbers(took, int64(thread), int64(trace))
	switch typ {
	case typeFileRead, typeFileWrite, typeFileForce:
		w.texts(c.Target.Name)
	case typeSocketRead, typeSocketWrite:
		w.peer(&c.Target)
		if typ == typeSocketRead {
			w.numbers(0) // timeout
		}
	default:
		w.texts(c.Op.String(), c.Target.Name)
	}
	if typ != typeFileForce {
		w.numbers(c.Bytes)
	}
	switch typ {
	case typeFileRead, typeSocketRead:
		w.body = appendBool(w.body, c.End)
	case typeFileForce:
		w.body = appendBool(w.body, false)
	case typeIOCall:
		w.body = appendBool(w.body, c.Failed)
	}
	w.body = appendInt32(w.body, int32(min(s.Looks(), math.MaxInt32)))
	w.numbers(int64(s.Span))
	w.end()
	if s.Link.Known() {
		w.detail(s, s.At.Ticks-took, thread, profile.Certain, 0)
	}
	return nil
}

// peer writes host, address and port. The kernel does not know the name that the program has for a host.
func (w *Writer) peer(t *profile.IOTarget) {
	name := t.Name
	if t.Addr.IsValid() {
		name = t.Addr.Addr().String()
	}
	w.texts(name, name)
	w.body = appendInt32(w.body, int32(t.Addr.Port()))
}

// sums writes what files and peers came to.
func (w *Writer) sums(at profile.Instant, io *profile.IO) {
	if io == nil {
		return
	}
	for i := range io.Sums {
		s := &io.Sums[i]
		w.event(typeIOSum, at.Ticks)
		w.texts(s.Kind, s.Target, s.Op)
		w.numbers(s.Calls, s.Bytes, int64(s.Took), s.Failed, s.Pending, int64(s.Pended))
		w.end()
	}
}
