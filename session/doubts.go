//go:build linux

package session

import (
	"fmt"
	"strconv"
	"strings"

	"goprof/vmstructs"
)

// Doubts returns sentences for users about what is uncertain for this JVM. There are none if goprof's tests run on this
// release and the JVM exports all that goprof asks for.
func (s *Session) Doubts() []string {
	var doubts []string
	if v := s.VM.Version(); !v.Tested() {
		doubts = append(doubts, untested(v))
	}
	for _, m := range s.VM.Missing() {
		doubts = append(doubts, "this JVM does not export all that goprof uses: "+m)
	}
	return doubts
}

// untested returns the sentence that goprof's tests do not run on this release. It is empty if they do.
func untested(v vmstructs.Version) string {
	name := "this JVM, which does not say its version"
	if v.Major > 0 {
		name = fmt.Sprintf("JDK %d (%s)", v.Major, v.Release)
	}
	var tested []string
	for _, major := range vmstructs.TestedReleases() {
		tested = append(tested, strconv.Itoa(major))
	}
	return fmt.Sprintf("goprof is not tested on %s, but on JDK %s. It reads this JVM by the fields that the JVM exports. "+
		"Where these do not suffice, a stack ends with its reason",
		name, strings.Join(tested, ", "))
}
