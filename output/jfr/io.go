package jfr

import (
	"math"

	"goprof/profile"
)

// Calls that read and write have the JDK's types if the JDK's recorder has such events. Others are goprof.IOCall. Each
// event is one call, with its own time and bytes. Of short calls, the file has only some, drawn by lot. So additional
// fields hold how many calls an event stands for. goprof.IOSum has the kernel's counts of all calls.

const ioCallName = "goprof.IOCall"

// IOTypes are the event types of calls that read and write, with the operation of such a call. NumIOOp: a field holds
// the operation.
var IOTypes = map[string]profile.IOOp{"jdk.FileRead": profile.IORead, "jdk.FileWrite": profile.IOWrite,
	"jdk.FileForce": profile.IOForce, "jdk.SocketRead": profile.IORead, "jdk.SocketWrite": profile.IOWrite,
	ioCallName: profile.NumIOOp}

// ioType returns the type for a call. The JDK has types only for files and peers.
func ioType(c *profile.IOCall) typeID {
	switch {
	case c.Failed: // the JDK has no types for these
	case c.Target.Kind == profile.IOFile && c.Op <= profile.IOForce:
		return typeFileRead + typeID(c.Op)
	case (c.Target.Kind == profile.IOPeer || c.Target.Kind == profile.IOClient) && c.Op <= profile.IOWrite:
		return typeSocketRead + typeID(c.Op)
	}
	return typeIOCall
}

// call writes a call. The event's time is the beginning of the call.
func (w *Writer) call(s *profile.Sample) error {
	if err := s.Read(); err != nil {
		return err
	}
	c, code := s.IO, codeOf(s)
	thread, trace := w.pools.thread(&s.Thread), w.pools.stack(&code)
	typ := ioType(c)
	took := max(int64(c.Took), 0)
	w.event(typ, s.At.Ticks-took)
	w.fields(took, thread, trace)
	switch typ {
	case typeFileRead:
		w.fields(c.Target.Name, c.Bytes, c.End)
	case typeFileWrite:
		w.fields(c.Target.Name, c.Bytes)
	case typeFileForce:
		w.fields(c.Target.Name, false)
	case typeSocketRead:
		w.peer(&c.Target)
		w.fields(int64(0), c.Bytes, c.End) // the first field is the timeout
	case typeSocketWrite:
		w.peer(&c.Target)
		w.fields(c.Bytes)
	default:
		w.fields(c.Op.String(), c.Target.Name, c.Bytes, c.Failed)
	}
	w.fields(int32(min(s.Looks(), math.MaxInt32)), s.Span)
	w.end()
	if s.Link.Known() {
		w.detail(s, s.At.Ticks-took, thread, profile.Certain, 0)
	}
	return nil
}

// peer writes host, address and port. The kernel does not know the program's name for a host.
func (w *Writer) peer(t *profile.IOTarget) {
	name := t.Name
	if t.Addr.IsValid() {
		name = t.Addr.Addr().String()
	}
	w.fields(name, name, int32(t.Addr.Port()))
}
