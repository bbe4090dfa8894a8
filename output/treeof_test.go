package output

import (
	"bytes"
	"reflect"
	"testing"

	"goprof/profile"
)

// TestTreeOf: a profile and its collapsed file give the same tree.
func TestTreeOf(t *testing.T) {
	p := profile.New()
	f := func(names ...string) *profile.Stack {
		s := &profile.Stack{}
		for i := len(names) - 1; i >= 0; i-- {
			kind := profile.Kind(len(names[i]) % 7)
			s.Frames = append(s.Frames, profile.Frame{Func: &profile.Func{Name: names[i]}, Kind: kind})
		}
		return s
	}
	cut := f("a", "b;\x00c", "d")
	cut.Truncated = profile.NoUnwindInfo
	p.Add("", f("a", "bb", "ccc"), 3)
	p.Add("", f("a", "bb"), 2)
	p.Add("[t tid=1]", f("a", "bb", "dddd"), 1)
	p.Add("", cut, 5)
	var text bytes.Buffer
	if err := Collapsed(&text, p); err != nil {
		t.Fatal(err)
	}
	want, err := ParseCollapsed(&text)
	if err != nil {
		t.Fatal(err)
	}
	if got := TreeOf(p); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant\n%+v", got, want)
	}
	if empty := TreeOf(profile.New()); empty.Total != 0 {
		t.Errorf("%+v", empty)
	}
}
