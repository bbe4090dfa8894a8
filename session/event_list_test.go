//go:build linux

package session

import (
	"slices"
	"strings"
	"testing"
)

func TestParseEvents(t *testing.T) {
	for text, want := range map[string][]AskedEvent{
		"alloc":                        {{Name: "alloc"}},
		"alloc=64k,exceptions":         {{"alloc", 64 << 10}, {Name: "exceptions"}},
		"libjvm:Handle::operator=":     {{Name: "libjvm:Handle::operator="}},
		"libjvm:Handle::operator==10":  {{"libjvm:Handle::operator=", 10}},
		"libjvm:Map<a,b>::put,gc":      {{Name: "libjvm:Map<a,b>::put"}, {Name: "gc"}},
		"libjvm:x::operator<,alloc=1m": {{Name: "libjvm:x::operator<"}, {"alloc", 1 << 20}},
		"alloc=x":                      {{Name: "alloc=x"}},
		"alloc,":                       nil,
		"":                             nil,
		"=10":                          nil,
		"alloc,alloc=10":               nil,
	} {
		got, err := ParseEvents(text)
		if !slices.Equal(got, want) || (err != nil) != (want == nil) {
			t.Errorf("%q: %v, %v, not %v", text, got, err, want)
		}
	}
}

// FuzzParseEvents: for any text, each name is a part of it, no name is empty, and none is lost.
func FuzzParseEvents(f *testing.F) {
	for _, seed := range []string{"alloc=64k,exceptions", "a<b,c>,d", "x>,<y", "=", "a==1,b=2g"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := ParseEvents(text)
		if err != nil {
			return
		}
		for _, e := range list {
			if e.Name == "" || !strings.Contains(text, e.Name) || e.Every > maxAmount {
				t.Errorf("%q: %+v", text, e)
			}
		}
	})
}
