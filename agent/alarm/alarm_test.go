package alarm

import (
	"strings"
	"testing"
	"time"

	"goprof/process/maybe"
	"goprof/triage/vitals"
)

func TestParse(t *testing.T) {
	all := Rules{Stuck: true, OutOfMemory: true, Signal: true, CPU: 0.9, For: 30 * time.Second}
	for text, want := range map[string]Rules{
		"stuck, oom, cpu>90% for 30s, SIGUSR2": all, "stuck,oom,SIGUSR2,cpu>90%": all,
		"cpu>12.5% for 2m": {CPU: 0.125, For: 2 * time.Minute}, "SIGUSR2": {Signal: true},
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%q: %+v %v", text, got, err)
		}
		if again, err := Parse(want.String()); err != nil || again != want {
			t.Errorf("%q: %+v %v", want.String(), again, err)
		}
	}
	for _, text := range []string{"", "stuck,", "cpu", "cpu>", "cpu>0%", "cpu>100%", "cpu>x%", "cpu>NaN%",
		"cpu>90% for 1s",
		"cpu>90% for 2h", "SIGUSR1", "cpu>90% for", "oom stuck"} {
		if got, err := Parse(text); err == nil || got != (Rules{}) {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

// readings are of a healthy JVM, one each 5 s.
func readings(n int, change func(i int, r *vitals.Reading)) (list []*vitals.Reading) {
	for i := range n {
		r := &vitals.Reading{At: time.Unix(1000+5*int64(i), 0)}
		r.JVM.Errors.OutOfMemory = maybe.Known(uint64(3))
		r.JVM.Safepoints = vitals.Safepoints{Count: maybe.Known(uint64(i)), State: maybe.Known(vitals.InSafepoint),
			Operation: maybe.Known("G1CollectFull")}
		r.Process.CPU, r.Process.CPUsAllowed = maybe.Known(time.Duration(i)*5*time.Second), maybe.Known(uint64(4))
		change(i, r)
		list = append(list, r)
	}
	return list
}

func TestJudge(t *testing.T) {
	all, _ := Parse("stuck, oom, cpu>90% for 30s")
	busy := func(r *vitals.Reading, i int, cpus float64) {
		r.Process.CPU = maybe.Known(time.Duration(5 * cpus * float64(i) * float64(time.Second)))
	}
	for name, c := range map[string]struct {
		change func(i int, r *vitals.Reading)
		at     int // the reading that gives the alarm; 0: none
		why    string
	}{
		"healthy, with a collection in each reading": {func(int, *vitals.Reading) {}, 0, ""},
		"nothing is known": {func(_ int, r *vitals.Reading) {
			*r = vitals.Reading{At: r.At}
		}, 0, ""},
		"an OutOfMemoryError": {func(i int, r *vitals.Reading) {
			r.JVM.Errors.OutOfMemory = maybe.Known(uint64(3 + i/4))
		}, 4, "OutOfMemoryError"},
		"errors are known late": {func(i int, r *vitals.Reading) {
			if i < 3 {
				r.JVM.Errors.OutOfMemory = maybe.Value[uint64]{}
			}
		}, 0, ""},
		"a safepoint that lasts": {func(i int, r *vitals.Reading) {
			r.JVM.Safepoints.Count = maybe.Known(uint64(min(i, 3)))
		}, 5, "G1CollectFull) for 10s"},
		"a thread that does not come": {func(i int, r *vitals.Reading) {
			r.JVM.Safepoints.Count, r.JVM.Safepoints.State = maybe.Known(uint64(1)), maybe.Known(vitals.BeginsSafepoint)
		}, 2, "has waited for a thread for 10s"},
		"a count of no safepoint": {func(i int, r *vitals.Reading) {
			r.JVM.Safepoints.Count, r.JVM.Safepoints.State = maybe.Known(uint64(1)), maybe.Known(vitals.NoSafepoint)
		}, 0, ""},
		"all CPUs": {func(i int, r *vitals.Reading) { busy(r, i, 3.9) }, 6, "90 % of its 4 CPUs for 30s"},
		"all CPUs of a group": {func(i int, r *vitals.Reading) {
			busy(r, i, 1.9)
			r.Cgroup.CPUs = maybe.Known(2.0)
		}, 6, "of its 2 CPUs"},
		"most CPUs": {func(i int, r *vitals.Reading) { busy(r, i, 3.5) }, 0, ""},
		"all CPUs, with a pause": {func(i int, r *vitals.Reading) {
			busy(r, i-i/4, 3.9)
		}, 0, ""},
	} {
		w, at, why := Watch{}, 0, ""
		for i, r := range readings(12, c.change) {
			if said := w.Judge(&all, r); said != "" && at == 0 {
				at, why = i, said
			}
		}
		if at != c.at || !strings.Contains(why, c.why) {
			t.Errorf("%s: %q in reading %d", name, why, at)
		}
	}
}

func TestDeadlocked(t *testing.T) {
	var w Watch
	alarms := 0
	for _, found := range []bool{true, false, true, true, true, true} {
		if w.Deadlocked(found) != "" {
			alarms++
		}
	}
	if alarms != 1 {
		t.Errorf("%d alarms", alarms)
	}
}
