package triage

import (
	"cmp"

	"goprof/profile"
	"goprof/profile/naming"
	"goprof/triage/vitals"
)

// isApp reports whether a thread may run code of the program.
func (x *exam) isApp(tid int) bool { return x.roles[tid] == vitals.Application }

func (d *Dump) thread(tid int) *profile.ThreadDump {
	for i := range d.Threads {
		if d.Threads[i].TID == tid && tid != 0 {
			return &d.Threads[i]
		}
	}
	return nil
}

// topJava returns the innermost Java frame that is not the class library's code for waiting. If there is none, it
// returns the innermost Java frame.
func topJava(s *profile.Stack) string {
	first := ""
	for i := range s.Frames {
		f := &s.Frames[i]
		if f.Func == nil || !f.Kind.Java() {
			continue
		}
		first = cmp.Or(first, f.Func.Name)
		if !naming.OfLibrary(f.Func.Name) {
			return f.Func.Name
		}
	}
	return first
}
