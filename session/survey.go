//go:build linux

package session

import "time"

// If goprof gets no CPU in time, a sample of CPU time whose thread was in new code is lost as stale. So goprof notes
// all code before the first sample (vmstructs/survey.go), and again after samples were stale. A lean recording, that of
// an agent, does not do that (habits.go): it has few stale samples, and code caches are large.

// surveyShare bounds surveys to 1/surveyShare of the time. A survey counts with the CPU time that goprof has used for
// it: on a busy machine it takes much longer than that.
const surveyShare = 50

// surveyed says when all generated code was noted last.
type surveyed struct {
	sparing
	wanted bool // a sample was stale since
}

// survey notes all code if a sample was stale since the last time.
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
