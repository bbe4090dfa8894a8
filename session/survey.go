//go:build linux

package session

import "time"

// If goprof gets no CPU in time, a sample of CPU time whose thread was in new code is lost as stale. So goprof notes
// all code before the first sample (vmstructs/survey.go), and again after samples were stale. A lean recording, that of
// an agent, does not do this (habits.go): it has few stale samples, and code caches are large.

// surveyShare bounds surveys to 1/surveyShare of the time. The cost of a survey is goprof's CPU time for it: on a busy
// machine a survey takes much longer than that.
const surveyShare = 50

// surveyed notes the last survey of all generated code.
type surveyed struct {
	sparing
	wanted bool // a sample was stale since then
}

// survey notes all generated code if a sample was stale since the last survey.
func (r *recording) survey() {
	if s := &r.surveyed; s.wanted && s.due(surveyShare) {
		s.do(r.VM.Survey)
	}
}

func (s *surveyed) do(survey func()) {
	began := ownCPU()
	survey()
	s.sparing, s.wanted = sparing{at: time.Now(), cost: ownCPU() - began}, false
}
