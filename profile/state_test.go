package profile

import (
	"strings"
	"testing"
)

func TestParseState(t *testing.T) {
	for i, name := range StateNames() {
		for _, text := range []string{name, State(i).String(), strings.ToUpper(name)} {
			if s, err := ParseState(text); err != nil || s != State(i) {
				t.Errorf("%q is %v, %v", text, s, err)
			}
		}
		if label := State(i).Label("what"); !IsState(label) || !IsState(State(i).Label("")) {
			t.Errorf("%q is no state", label)
		}
	}
	for _, text := range []string{"", "asleep", "[parked]", "parked "} {
		if s, err := ParseState(text); err == nil {
			t.Errorf("%q is %v", text, s)
		}
	}
}
