//go:build linux

package examine

import (
	"time"

	"goprof/memory"
	"goprof/profile"
	"goprof/session"
)

// memoryDue reports whether memory is to be read now: at the beginning, after each third of the time, and at the end.
// before is how often it was read.
func memoryDue(before int, passed, all time.Duration) bool {
	return passed >= all || before < 3 && passed >= time.Duration(before)*all/3
}

// readMemory reads the parts of the resident memory. A part that could not be read is missing, and the rules that need
// it say so.
func (x *examination) readMemory(arenas bool) {
	m, err := session.Ask(x.session, func() (*profile.Memory, error) {
		if x.memory == nil {
			x.memory = memory.NewReader(x.session.Process, x.session.VM)
		}
		return x.memory.Read(arenas)
	})
	if err == nil {
		x.evidence.Memory = append(x.evidence.Memory, m)
	}
}
