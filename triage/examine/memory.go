//go:build linux

package examine

import (
	"time"

	"goprof/memory"
	"goprof/profile"
)

// memoryDue reports whether memory is to be read, so often read before: at the beginning, after each third of the time,
// and always at the end.
func memoryDue(before int, passed, all time.Duration) bool {
	return passed >= all || before < 3 && passed >= time.Duration(before)*all/3
}

// readMemory reads where the resident memory is. What could not be read is missing: rules that need it say so.
func (x *examination) readMemory(arenas bool) {
	read := make(chan *profile.Memory, 1)
	if !x.session.Guarded(func() {
		if x.memory == nil {
			x.memory = memory.NewReader(x.session.Process, x.session.VM)
		}
		m, err := x.memory.Read(arenas)
		if err != nil {
			m = nil
		}
		read <- m
	}) {
		return
	}
	if m := <-read; m != nil {
		x.evidence.Memory = append(x.evidence.Memory, m)
	}
}
