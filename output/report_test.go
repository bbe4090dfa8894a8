package output

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"goprof/profile"
)

const reportInput = `[main tid=1];a.b.Main.main_[0];a.b.Fib.fib_[1];a.b.Fib.fib_[j];a.b.Fib.fib_[i] 10
[main tid=1];a.b.Main.main_[0];a.b.Fib.fib_[1] 5
[main tid=1];a.b.Main.main_[0];read 3
[gc tid=2];Thread::run;a.b.Main.main_[j] 2
Top.level_[j] 1
`

func TestReport(t *testing.T) {
	tree, err := ParseCollapsed(strings.NewReader(reportInput))
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		Name        string
		Self, Total int64
	}
	for by, want := range map[string][]row{
		"method": {{"a.b.Fib.fib", 15, 15}, {"read", 3, 3}, {"a.b.Main.main", 2, 20}, {"Top.level", 1, 1},
			{"[main tid=1]", 0, 18}, {"Thread::run", 0, 2}, {"[gc tid=2]", 0, 2}},
		"class":   {{"a.b.Fib", 15, 15}, {"a.b.Main", 5, 20}, {"Top", 1, 1}, {"[thread]", 0, 20}, {"[native]", 0, 2}},
		"package": {{"a.b", 20, 20}, {"[no package]", 1, 1}, {"[thread]", 0, 20}, {"[native]", 0, 2}},
		"kind": {{"inlined", 10, 10}, {"c1", 5, 15}, {"compiled", 3, 13}, {"native", 3, 5}, {"thread", 0, 20},
			{"interpreted", 0, 18}},
		"thread": {{"[main tid=1]", 18, 18}, {"[gc tid=2]", 2, 2}, {noThread, 1, 1}},
	} {
		r, err := NewReport(tree, by)
		if err != nil {
			t.Fatal(err)
		}
		var got []row
		var self int64
		for _, x := range r.Rows {
			got = append(got, row{x.Name, x.Self, x.Total})
			self += x.Self
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("by %s: %s", by, d)
		}
		if self != 21 || r.Samples != 21 {
			t.Errorf("by %s: %d samples, %d in self", by, r.Samples, self)
		}
	}
	if _, err := NewReport(tree, "colour"); err == nil {
		t.Error("a report by colour")
	}
}

// TestReportTotals compares the totals of the walk with a simple sum over stacks.
func TestReportTotals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	var b strings.Builder
	want := map[string]int64{}
	for range 500 {
		seen := map[string]bool{}
		for i := range 1 + r.IntN(8) {
			name := string(rune('a' + r.IntN(4)))
			if i > 0 {
				b.WriteByte(';')
			}
			b.WriteString(name)
			seen[name] = true
		}
		b.WriteString(" 1\n")
		for name := range seen {
			want[name]++
		}
	}
	tree, err := ParseCollapsed(strings.NewReader(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	report, err := NewReport(tree, "method")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, row := range report.Rows {
		got[row.Name] = row.Total
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestReportFormats(t *testing.T) {
	tree, err := ParseCollapsed(strings.NewReader("a.B.c_[j];evil\x1b[2J 3\na.B.c_[j] 1\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewReport(tree, "method")
	if err != nil {
		t.Fatal(err)
	}
	r.Keep(1)
	var text, js strings.Builder
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "evil?[2J") || !strings.Contains(text.String(), "and 1 more: --top 0 shows all") {
		t.Error(text.String())
	}
	if err := r.JSON(&js); err != nil {
		t.Fatal(err)
	}
	const want = `{"weight":"samples","samples":4,"by":"method","rows":[{"name":"evil\u001b[2J","self":3,"self_share":0.75,"total":3,"total_share":0.75}],"omitted":1}`
	var x, y any
	if json.Unmarshal([]byte(js.String()), &x) != nil || json.Unmarshal([]byte(want), &y) != nil {
		t.Fatal(js.String())
	}
	if d := cmp.Diff(y, x); d != "" {
		t.Error(d)
	}
}

// pooled is a recording of parked and sleeping threads: the methods in which they wait have most of the time.
const pooled = "[pool-1 tid=1];__clone3;call_stub;java.lang.Thread.run_[0];a.Pool.take_[j];" +
	"java.util.concurrent.locks.LockSupport.park_[j];jdk.internal.misc.Unsafe.park_[0];Unsafe_Park;Parker::park;" +
	"__futex_abstimed_wait_common;[parked: a.Lock] 60\n" +
	"[main tid=2];a.b.Main.main_[0];java.lang.Thread.sleep_[0];java.lang.Thread.sleepNanos0_[0];JVM_Sleep;" +
	"__futex_abstimed_wait_common;[sleeping] 20\n" +
	"[main tid=2];a.b.Main.main_[0];java.io.FileInputStream.read_[0];read;[running] 10\n" +
	"[VM tid=3];__clone3;VMThread::run;Monitor::wait;pthread_cond_wait;__futex_abstimed_wait_common;[in VM] 8\n" +
	"[java tid=4];__clone3;pthread_join;__futex_abstimed_wait_common;[in native] 2\n"

// TestReportOfWaiting: under each key, the time of a waiting thread counts for the same frame as in the account.
func TestReportOfWaiting(t *testing.T) {
	tree := parseTree(t, pooled)
	for by, want := range map[string]map[string]int64{
		"method":  {"a.Pool.take": 60, "a.b.Main.main": 20, "read": 10, "VMThread::run": 8, "__clone3": 2},
		"class":   {"a.Pool": 60, "a.b.Main": 20, "java.io.FileInputStream": 10, "[native]": 10},
		"package": {"a": 60, "a.b": 20, "java.io": 10, "[native]": 10},
		"kind":    {"compiled": 60, "interpreted": 20, "native": 20},
		"state":   {"[parked: a.Lock]": 60, "[sleeping]": 20, "[running]": 10, "[in VM]": 8, "[in native]": 2},
		"hottest": {"a.Pool.take (parked)": 60, "a.b.Main.main (sleeping)": 20, "kernel: read (running)": 10,
			"the JVM itself (in VM)": 8, "__clone3 (in native)": 2},
	} {
		r := NewHottest(tree, &profile.Meta{})
		if by != ByHottest {
			var err error
			if r, err = NewReport(tree, by); err != nil {
				t.Fatal(err)
			}
		}
		got := map[string]int64{}
		for _, row := range r.Rows {
			if row.Self > 0 {
				got[row.Name] = row.Self
			}
			if row.Name == "jdk.internal.misc.Unsafe.park" && row.Total != 60 {
				t.Errorf("Unsafe.park is on %d stacks", row.Total)
			}
		}
		if d := cmp.Diff(want, got); d != "" || r.Samples != 100 {
			t.Errorf("by %s of %d: %s", by, r.Samples, d)
		}
	}
}

// parseTree reads collapsed stacks.
func parseTree(t *testing.T, text string) *Tree {
	t.Helper()
	tree, err := ParseCollapsed(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return tree
}
