package leaf

import (
	"bytes"
	"testing"

	"goprof/vmstructs"
)

// TestBesidePoll: which instructions beside a poll belong to the poll's loop. The
// instruction in question stands so many before the poll or behind it.
func TestBesidePoll(t *testing.T) {
	const poll = "418502"          // test [r10], eax
	const load = "4d8b9748040000 " // mov r10, [r15+0x448]
	for _, r := range []struct {
		name, before, after string
		at                  int // from the poll on
		part, beside        bool
	}{
		{"the load for the poll", load, "", -1, true, false},
		{"the load, and something in between", load + "ffc1 ", "", -2, true, false},
		{"the load, and its register written again", load + "4d89ca ", "", -2, false, false},
		{"the load, and a branch in between", load + "7402 ", "", -2, false, false},
		{"a load of the thread for something else", "4d8b9f48040000 ffc1 ", "", -2, false, false},
		{"what counts", "ffc1 ", "", -1, false, true},
		{"what counts, before the load", "ffc1 " + load, "", -2, false, true},
		{"what counts, further away", "ffc1 ffc2 ", "", -2, false, false},
		{"a load of a field", "8b4314 ", "", -1, false, false},
		{"a copy", "89c8 ", "", -1, false, false},
		{"a comparison behind", "", " 39c8", 1, false, true},
		{"a comparison with memory behind", "", " 3b4314", 1, false, true},
		{"a copy behind", "", " 89c8", 1, false, false},
		{"a comparison further behind", "", " ffc1 39c8", 2, false, false},
	} {
		u := newMadeUp(t)
		code := bytes.Repeat([]byte{0x90}, int(u.b.End-u.b.Begin))
		before := unhex(t, r.before)
		copy(code[int(u.records[0])-len(before):], before)
		copy(code[u.records[0]:], unhex(t, poll+r.after))
		u.m = &codeMap{cpu: u.f.cpu}
		u.m.begin(code, u.b.Begin, u.b.Records())
		n := u.m.place(u.records[0])
		i := &u.m.list[n]
		i.told, i.kind, i.record = true, atPoll, u.records[0]
		for k := 0; k > r.at; k-- {
			n = u.m.before(n)
		}
		for k := 0; k < r.at; k++ {
			n = u.m.next(n)
		}
		if e := u.part(n); (e.kind == atPoll) != r.part {
			t.Errorf("%s: part of %+v", r.name, e)
		}
		p := u.question().at(n)
		p.routed = &inferred{scopes: u.scopes(0)}
		if s := p.besidePoll().scopes; (s != nil) != r.beside || s != nil && s[0] != u.scopes(0)[0] {
			t.Errorf("%s: beside %+v", r.name, s)
		}
		p.routed.scopes = []vmstructs.Scope{{Method: &vmstructs.Method{Name: "other"}}}
		if p.besidePoll().scopes != nil {
			t.Errorf("%s: other methods are confirmed", r.name)
		}
	}
}
