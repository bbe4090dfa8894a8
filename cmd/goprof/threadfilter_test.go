//go:build linux

package main

import (
	"testing"

	"github.com/spf13/cobra"
)

func TestThreadFilter(t *testing.T) {
	for _, c := range []struct {
		only, not string
		want      string // those of a, b and c that are wanted
	}{
		{"", "", "abc"},
		{"^[ab] ", "", "ab"},
		{"", "tid=2$", "ac"},
		{"^[ab] ", "tid=2$", "a"},
		{"none", "", ""},
	} {
		f := threadFilter{only: c.only, not: c.not}
		wants, err := f.check(&cobra.Command{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for name, thread := range map[string]string{"a": "a tid=1", "b": "b tid=2", "c": "c tid=3"} {
			if wants == nil || wants(thread) {
				got += name
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("--thread %q --exclude-thread %q: %q, not %q", c.only, c.not, got, c.want)
		}
	}
	if wants, _ := (&threadFilter{}).check(&cobra.Command{}); wants != nil {
		t.Error("without a filter each thread is asked about")
	}
}
