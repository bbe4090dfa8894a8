package triage

import (
	"cmp"
	"fmt"

	"goprof/profile"
)

// standsStill finds that the process does not run at all. Until it runs, it answers nothing, whatever else is wrong.
func standsStill(x *exam) *suspicion {
	if !x.Stopped {
		return nil
	}
	return &suspicion{sure: 0.99, severity: profile.Critical, claim: "No thread runs: " + x.standstill() + ".",
		evidence: []string{"what stands under \"Not known\" can be judged only while it runs"},
		next:     cmp.Or(x.Thaw, fmt.Sprintf("kill -CONT %d", x.PID)) + "  (lets it run)"}
}

// standstill says why the process stands still.
func (e *Evidence) standstill() string {
	if e.Frozen != "" {
		return "the process is " + e.Frozen
	}
	return "the process is stopped (SIGSTOP, Ctrl-Z, a debugger)"
}
