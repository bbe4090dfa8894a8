package triage

import (
	"fmt"

	"goprof/profile"
)

// When direct memory has reached its limit, the next buffer costs a collection of the whole heap (java.nio.Bits,
// reserveMemory), and then an OutOfMemoryError. nearDirect is the part of the limit that must be reserved at every
// reading. Programs that keep all their buffers on purpose set the limit higher.
const nearDirect = 0.9

func directFull(x *exam) *suspicion {
	unread, unlimited := len(x.Memory) == 0, false
	for _, m := range x.Memory {
		switch d := m.Direct; {
		case d == nil:
			unread = true
		case d.Reserved == 0 || d.Max > 0 && float64(d.Reserved) < nearDirect*float64(d.Max):
			if x.lastMemory().Direct != nil {
				return nil
			}
		case d.Max == 0:
			unlimited = true
		}
	}
	switch {
	case unread:
		return x.cannotTell("what the JVM has reserved for direct buffers could not be read")
	case unlimited:
		return x.cannotTell("the limit of direct buffers could not be read (-XX:MaxDirectMemorySize)")
	}
	first, last := x.Memory[0].Direct, x.lastMemory().Direct
	return &suspicion{sure: 0.91, severity: profile.Warning,
		claim: fmt.Sprintf("Direct memory is nearly full: %s of %s.", size(last.Reserved), size(last.Max)),
		evidence: []string{fmt.Sprintf("%s in %d direct buffers, then %s in %d", size(first.Reserved), first.Count,
			size(last.Reserved), last.Count)},
		next: fmt.Sprintf("goprof heap %d --area old  (who keeps java.nio.DirectByteBuffer); or a larger "+
			"-XX:MaxDirectMemorySize", x.PID)}
}

// lastMemory returns the last reading of memory. There must be one.
func (x *exam) lastMemory() *profile.Memory { return x.Memory[len(x.Memory)-1] }
