package resource

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAttributes(t *testing.T) {
	var a Attributes
	a.Set(ServiceName, "shop")
	a.SetInt(ProcessPID, 4711)
	a.Set(HostName, "")
	var more Attributes
	more.Set(ServiceName, "other")
	more.Set(ServiceVersion, "1.2")
	a.Add(more)
	if got := fmt.Sprint(a.Get(ServiceName), a.Get(ProcessPID), a.Get(ServiceVersion), len(a)); got != "shop47111.23" {
		t.Errorf("%s: %+v", got, a)
	}
	a.Remove(ServiceName)
	if a.Get(ServiceName) != "" || len(a) != 2 {
		t.Errorf("%+v", a)
	}
}

// TestAttributesAreBounded: a target can neither make a message grow, nor make a server refuse it.
func TestAttributesAreBounded(t *testing.T) {
	var a Attributes
	for i := range 10_000 {
		a.Set(fmt.Sprintf("%d%s", i, strings.Repeat("k", 300)), strings.Repeat("é", MaxText))
	}
	if len(a) != MaxAttributes {
		t.Errorf("%d attributes", len(a))
	}
	for _, one := range a {
		if len(one.Key) > MaxKey || len(one.Text) > MaxText || !utf8.ValidString(one.Text) {
			t.Fatalf("%d, %d", len(one.Key), len(one.Text))
		}
	}
}

func TestClean(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{"a\x00b\nc", 9, "a b c"}, {"a\xffb", 9, "a\uFFFDb"}, {"\u2028", 9, " "}, {"ééé", 5, "éé"}, {"ééé", 4, "éé"},
		{"12345", 5, "12345"}, {"123456", 5, "12345"}, {"€€", 4, "€"}, {"\xff\xff\xff\xff\xff\xff", 5, "\uFFFD"},
	} {
		if got := Clean(c.in, c.limit); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.in, got, c.want)
		}
	}
}

// TestWordLeavesRoom: a process with many attributes of its own cannot hide its container.
func TestWordLeavesRoom(t *testing.T) {
	var word, a Attributes
	for i := range 2 * MaxAttributes {
		word.Set(fmt.Sprintf("a%03d", i), "x")
	}
	a.AddWord(word)
	a.Add(Attributes{{Key: ContainerID, Text: "c"}})
	if len(a) != MaxAttributes-OwnRoom+1 || a.Get(ContainerID) != "c" {
		t.Errorf("%d attributes, container %q", len(a), a.Get(ContainerID))
	}
}
