package leaf

import (
	"bytes"
	"testing"
)

// TestPollLoad: which instructions load what a poll reads.
func TestPollLoad(t *testing.T) {
	const poll = "418502"          // test [r10], eax
	const load = "4d8b9748040000 " // mov r10, [r15+0x448]
	for _, r := range []struct {
		name, before string
		at           int // from the poll on
		part         bool
	}{
		{"the load for the poll", load, -1, true},
		{"the load, and something in between", load + "ffc1 ", -2, true},
		{"the load, and its register written again", load + "4d89ca ", -2, false},
		{"the load, and a branch in between", load + "7402 ", -2, false},
		{"a load of the thread for something else", "4d8b9f48040000 ffc1 ", -2, false},
		{"what counts", "ffc1 ", -1, false},
		{"what counts, before the load", "ffc1 " + load, -2, false},
		{"what counts, further away", "ffc1 ffc2 ", -2, false},
		{"a load of a field", "8b4314 ", -1, false},
		{"a copy", "89c8 ", -1, false},
	} {
		u := newMadeUp(t)
		code := bytes.Repeat([]byte{0x90}, int(u.b.End-u.b.Begin))
		before := unhex(t, r.before)
		copy(code[int(u.records[0])-len(before):], before)
		copy(code[u.records[0]:], unhex(t, poll))
		u.m = &codeMap{cpu: u.f.cpu}
		u.m.begin(code, u.b.Begin, u.b.Records())
		n := u.m.place(u.records[0])
		i := &u.m.list[n]
		i.filled, i.kind, i.record = true, atPoll, u.records[0]
		for k := 0; k > r.at; k-- {
			n = u.m.before(n)
		}
		if e := u.part(n); (e.kind == atPoll) != r.part {
			t.Errorf("%s: part of %+v", r.name, e)
		}
	}
}
