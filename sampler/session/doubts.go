//go:build linux

package session

import (
	"fmt"
	"strconv"
	"strings"

	"goprof/vmstructs"
)

// Doubts says in sentences for a user what is uncertain about this JVM: nothing, where it is of a release that the
// tests run on and exports all that goprof asks for.
func (s *Session) Doubts() []string {
	var doubts []string
	if v := s.VM.Version(); !v.Tested() {
		doubts = append(doubts, untested(v))
	}
	for _, m := range s.VM.Missing() {
		doubts = append(doubts, "this JVM does not tell all: "+m)
	}
	return doubts
}

// untested says that nobody has tried this release.
func untested(v vmstructs.Version) string {
	name := "this JVM, which does not tell its version,"
	if v.Major > 0 {
		name = fmt.Sprintf("JDK %d (%s)", v.Major, v.Release)
	}
	var tested []string
	for _, major := range vmstructs.TestedReleases() {
		tested = append(tested, strconv.Itoa(major))
	}
	return fmt.Sprintf("%s is none of those that goprof is tested on (JDK %s): it is read by what it exports; what "+
		"cannot be read so ends a stack with its reason",
		name, strings.Join(tested, ", "))
}
