package output

import (
	"slices"
	"strings"
	"testing"

	"goprof/profile"
)

const wakersInput = `[taker tid=1];a.Shop.take_[j];java.util.concurrent.locks.LockSupport.park_[j];[parked: a.Lock];[woken by];futex_wake;jdk.internal.misc.Unsafe.unpark_[j];a.Shop.put_[i];a.Shop.run_[j];[putter tid=2] 20
[taker tid=1];a.Shop.take_[j];java.util.concurrent.locks.LockSupport.park_[j];[parked: a.Lock];[woken by];a.Shop.put_[i];a.Shop.run_[j];[putter tid=2];[woken by];java.util.concurrent.locks.LockSupport.unpark_[j];a.Shop.c_[j];a.Shop.d_[j];[b tid=4];[woken by: timer (interrupt)] 40
[taker tid=1];a.Shop.take_[j];java.util.concurrent.locks.LockSupport.park_[j];[parked: a.Lock];[woken by];[truncated: not copied];[putter tid=3] 5
[taker tid=1];a.Shop.nap_[j];java.lang.Thread.sleep_[j];[sleeping];[woken by: timer (interrupt)] 20
[taker tid=1];a.Shop.nap_[j];java.lang.Thread.sleep_[j];[sleeping];[not woken: not over at the end] 10
[taker tid=1];a.Shop.take_[j];[runnable] 5
`

// TestWakersReport: a table by waker shows what ended the waits. Other tables have the waits as if nothing were above
// them.
func TestWakersReport(t *testing.T) {
	tree, err := ParseCollapsed(strings.NewReader(wakersInput))
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		name string
		self int64
	}
	rows := func(r *Report) (got []row) {
		for _, x := range r.Rows {
			if x.Self > 0 {
				got = append(got, row{x.Name, x.Self})
			}
		}
		return got
	}
	for by, want := range map[string][]row{
		ByWaker: {{"[putter tid=2] a.Shop.put", 60}, {"[woken by: timer (interrupt)]", 20},
			{"[not woken: not over at the end]", 10}, {noWaker, 5}, {"[putter tid=3]", 5}},
		"method":  {{"a.Shop.take", 70}, {"a.Shop.nap", 30}},
		ByState:   {{"[parked: a.Lock]", 65}, {"[sleeping]", 30}, {"[runnable]", 5}},
		ByThread:  {{"[taker tid=1]", 100}},
		ByHottest: {{"a.Shop.take (parked)", 65}, {"a.Shop.nap (sleeping)", 30}, {"a.Shop.take (runnable)", 5}},
		ByChain: {{"[putter tid=2] a.Shop.put < [b tid=4] a.Shop.c < [woken by: timer (interrupt)]", 40},
			{"[putter tid=2] a.Shop.put", 20}, {"[woken by: timer (interrupt)]", 20},
			{"[not woken: not over at the end]", 10}, {noWaker, 5}, {"[putter tid=3]", 5}},
	} {
		var r *Report
		switch by {
		case ByWaker, ByChain:
			r = NewWakers(tree, by)
		case ByHottest:
			r = NewHottest(tree, &profile.Meta{})
		default:
			r, err = NewReport(tree, by)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := rows(r); !slices.Equal(got, want) {
			t.Errorf("by %s: %v, not %v", by, got, want)
		}
	}
	plain, _ := ParseCollapsed(strings.NewReader("a.B.c_[j];[parked] 3\n"))
	if r := NewWakers(plain, ByWaker); !strings.Contains(r.Lacks(), "--wakers") {
		t.Errorf("%+v lacks %q", r.Rows, r.Lacks())
	}
}
