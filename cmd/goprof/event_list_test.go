//go:build linux

package main

import (
	"slices"
	"strings"
	"testing"
)

func TestParseEvents(t *testing.T) {
	for text, want := range map[string][]askedEvent{
		"alloc":                        {{name: "alloc"}},
		"alloc=64k,exceptions":         {{"alloc", 64 << 10}, {name: "exceptions"}},
		"libjvm:Handle::operator=":     {{name: "libjvm:Handle::operator="}},
		"libjvm:Handle::operator==10":  {{"libjvm:Handle::operator=", 10}},
		"libjvm:Map<a,b>::put,gc":      {{name: "libjvm:Map<a,b>::put"}, {name: "gc"}},
		"libjvm:x::operator<,alloc=1m": {{name: "libjvm:x::operator<"}, {"alloc", 1 << 20}},
		"alloc=x":                      {{name: "alloc=x"}},
		"alloc,":                       nil,
		"":                             nil,
		"=10":                          nil,
		"alloc,alloc=10":               nil,
	} {
		got, err := parseEvents(text)
		if !slices.Equal(got, want) || (err != nil) != (want == nil) {
			t.Errorf("%q: %v, %v, not %v", text, got, err, want)
		}
	}
}

// FuzzParseEvents: whatever the text is, each name is a part of it, no name is empty, and none is lost.
func FuzzParseEvents(f *testing.F) {
	for _, seed := range []string{"alloc=64k,exceptions", "a<b,c>,d", "x>,<y", "=", "a==1,b=2g"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := parseEvents(text)
		if err != nil {
			return
		}
		for _, e := range list {
			if e.name == "" || !strings.Contains(text, e.name) || e.every > maxAmount {
				t.Errorf("%q: %+v", text, e)
			}
		}
	})
}
