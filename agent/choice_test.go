//go:build linux

package agent

import (
	"testing"
	"time"

	"goprof/diagnose"
)

func rules(t *testing.T, texts ...string) (all []Rule) {
	t.Helper()
	for _, text := range texts {
		r, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func TestChoice(t *testing.T) {
	j := &Candidate{JVM: diagnose.JVM{Main: "com.acme.Shop", User: "app", Version: "17.0.1", Container: "0123456789ab"},
		Cgroup: "/kubepods/burstable/pod1/x", Namespace: "prod"}
	for _, c := range []struct {
		name         string
		match, deny  []string
		outside, now Verdict
	}{
		{"all", nil, nil, Wanted, Wanted},
		{"name", []string{"Shop"}, nil, Wanted, Wanted},
		{"other name", []string{"Bank"}, nil, Unwanted, Unwanted},
		{"one of two", []string{"Bank", "user=^app$"}, nil, Wanted, Wanted},
		{"denied", []string{"Shop"}, []string{"namespace=prod"}, Unwanted, Unwanted},
		{"version asked for", []string{"version=^17"}, nil, Unsure, Wanted},
		{"version denied", nil, []string{"version=^1[.]8"}, Unsure, Wanted},
		{"version that is denied", nil, []string{"version=^17"}, Unsure, Unwanted},
		{"cgroup", []string{"cgroup=burstable"}, []string{"container=^ff"}, Wanted, Wanted},
		{"a name with =", []string{"name=a=b"}, nil, Unwanted, Unwanted},
	} {
		choice := Choice{rules(t, c.match...), rules(t, c.deny...)}
		if got := choice.Judge(j, false); got != c.outside {
			t.Errorf("%s: from outside %v", c.name, got)
		}
		if got := choice.Judge(j, true); got != c.now {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	for _, wrong := range []string{"(", "usr=app", "Vendor=x", "name=("} {
		if _, err := ParseRule(wrong); err == nil {
			t.Errorf("%s is a rule", wrong)
		}
	}
}

// The configuration may change while JVMs are recorded.
func TestReload(t *testing.T) {
	d := drive(t, Default())
	d.w.start(5, "Shop")
	d.w.start(6, "Bank")
	work := func(n int) {
		for range n {
			d.w.use(5, 100*time.Millisecond)
			d.w.use(6, 100*time.Millisecond)
			d.beats(1)
		}
	}
	work(4)
	s := Default()
	s.Choice.Deny = rules(t, "Bank")
	d.take(s)
	work(4)
	if d.stateOf(5) != recorded || d.stateOf(6) != denied {
		t.Errorf("%v %v", d.stateOf(5), d.stateOf(6))
	}
	d.take(Default())
	work(4)
	if d.stateOf(6) != recorded {
		t.Errorf("wanted again, and %v", d.stateOf(6))
	}
}

// A reload begins the budget anew: lowered rates become what the user has asked for, and batches say so.
func TestReloadEndsLowRates(t *testing.T) {
	d := drive(t, Default())
	j := d.w.start(5, "Shop")
	d.w.use(5, time.Second)
	d.beats(2)
	r := d.guests[5].record
	d.budget.slower, d.budget.factor, r.share = 4, 0.5, 0.25
	d.budget.govern(r)
	d.take(Default())
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if j.share != 1 || d.w.interval != d.budget.base || d.budget.intervalOf(r) != d.budget.base {
		t.Errorf("a share of %v of a sample each %v; batches say %v", j.share, d.w.interval, d.budget.intervalOf(r))
	}
}

// If the kernel takes the samples, the budget cannot lower their rate, and batches do not claim a lower one.
func TestFixedRatesAreToldAsTheyAre(t *testing.T) {
	d := drive(t, Default())
	d.w.start(5, "Perf").fixed = true
	for range 40 {
		d.w.use(5, time.Second)
		d.w.mu.Lock()
		d.w.jvms[5].st.Taken += 19
		d.w.own += 500 * time.Millisecond // the budget allows 20 ms of it
		d.w.mu.Unlock()
		d.beats(1)
	}
	if d.budget.slower == 1 {
		t.Error("the budget lowers nothing")
	}
	if got := d.budget.intervalOf(d.guests[5].record); got != d.budget.base {
		t.Errorf("batches say %v, samples are taken each %v", got, d.budget.base)
	}
}
