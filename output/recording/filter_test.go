package recording

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"goprof/output"
	"goprof/profile"
)

func reading(t testing.TB, data []byte, o Options) *File {
	t.Helper()
	o.Stdin = bytes.NewReader(data)
	f, err := Open(Stdin, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func collapsedOf(t testing.TB, src Source, o SumOptions) string {
	t.Helper()
	p, err := Sum(src, o)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := output.Collapsed(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFilter(t *testing.T) {
	flight := jfrOf(t, profile.ModeCPU, profile.Samples, cpuSamples())
	re := regexp.MustCompile
	sell, work := "shop.Main.main_[j];shop.Main.sell_[i] ", "[truncated: no unwind info];G1ParTask::work(unsigned int) "
	for name, c := range map[string]struct {
		f    Filter
		want string
		left string
	}{
		"all": {Filter{}, work + "10\n" + sell + "100\n", ""},
		"time": {Filter{From: 2 * time.Second, To: 5 * time.Second}, work + "3\n" + sell + "30\n",
			"77 of 110 samples left out: 77 by their time"},
		"from": {Filter{From: 9 * time.Second}, work + "1\n" + sell + "10\n",
			"99 of 110 samples left out: 99 by their time"},
		"thread": {Filter{Thread: re("^worker-1 tid=12$")}, sell + "100\n",
			"10 of 110 samples left out: 10 by their thread"},
		"others":   {Filter{ExcludeThread: re("worker")}, work + "10\n", "100 of 110 samples left out: 100 by their thread"},
		"include":  {Filter{Include: re("sell$")}, sell + "100\n", "10 of 110 samples left out: 10 by their frames"},
		"exclude":  {Filter{Exclude: re("sell$")}, work + "10\n", "100 of 110 samples left out: 100 by their frames"},
		"cut":      {Filter{Exclude: re("truncated")}, sell + "100\n", "10 of 110 samples left out: 10 by their frames"},
		"cut only": {Filter{Include: re("truncated")}, work + "10\n", "100 of 110 samples left out: 100 by their frames"},
		"state": {Filter{States: []profile.State{profile.Running}, To: time.Second}, work + "1\n" + sell + "10\n",
			"99 of 110 samples left out: 99 by their time"},
	} {
		t.Run(name, func(t *testing.T) {
			part, err := c.f.Of(reading(t, flight, Options{}))
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if got := collapsedOf(t, part, SumOptions{}); got != c.want || part.LeftOut() != c.left {
					t.Errorf("%s%q, want %s%q", got, part.LeftOut(), c.want, c.left)
				}
			}
			if part.Info().Summary != nil {
				t.Error("the account is of all samples")
			}
		})
	}
	none := Filter{Thread: re("nobody")}
	part, err := none.Of(reading(t, flight, Options{}))
	if err == nil {
		_, err = Sum(part, SumOptions{})
	}
	if left := new(NoneLeft); !errors.As(err, &left) || IsBad(err) || !strings.Contains(err.Error(), "110 of 110") {
		t.Errorf("%v", err)
	}
}

// TestFilterLacks: a filter may need what a file does not have. Then the error says so.
func TestFilterLacks(t *testing.T) {
	re := regexp.MustCompile("x")
	for name, c := range map[string]struct {
		data []byte
		f    Filter
		want string
	}{
		"collapsed": {[]byte(collapsedText), Filter{From: 1}, "--from and --to need times, and a collapsed file has none"},
		"pprof":     {pprofOf(t, cpuSamples()), Filter{To: 1}, "a pprof file has none"},
		"threads":   {[]byte("a;b 1\n"), Filter{Thread: re}, "--thread and --exclude-thread need threads"},
		"states":    {[]byte("a;b 1\n"), Filter{States: []profile.State{profile.Parked}}, "--state needs"},
	} {
		if _, err := c.f.Of(reading(t, c.data, Options{})); !IsBad(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Sum(reading(t, []byte("a;b 1\n"), Options{}), SumOptions{Threads: true}); !IsBad(err) {
		t.Errorf("threads that there are not: %v", err)
	}
}

// TestFormatsAgree: a recording gives the same stacks in collapsed, pprof and JFR files, with and without threads.
func TestFormatsAgree(t *testing.T) {
	samples := cpuSamples()
	flight, proto := jfrOf(t, profile.ModeCPU, profile.Samples, samples), pprofOf(t, samples)
	for _, o := range []SumOptions{{}, {Threads: true}} {
		want := collapsedOf(t, reading(t, flight, Options{}), o)
		if got := collapsedOf(t, reading(t, proto, Options{}), o); got != want {
			t.Errorf("by pprof %s, by JFR %s", got, want)
		}
		tree, err := TreeOf(reading(t, flight, Options{}), o)
		again, err2 := TreeOf(reading(t, []byte(want), Options{}), o)
		if err != nil || err2 != nil || tree.Total != again.Total || tree.Stacks != again.Stacks ||
			len(tree.Nodes) != len(again.Nodes) {
			t.Errorf("%+v and %+v, %v %v", tree, again, err, err2)
		}
		if got := collapsedOf(t, reading(t, []byte(want), Options{}), o); got != want {
			t.Errorf("again it is %s, was %s", got, want)
		}
	}
	cpu := profile.CPUTime
	byTime := collapsedOf(t, reading(t, flight, Options{Weight: &cpu}), SumOptions{})
	if !strings.Contains(byTime, "sell_[i] 9000000000\n") || !strings.Contains(byTime,
		profile.NotSampled+" 1000000000\n") {
		t.Errorf("CPU time: %s", byTime)
	}
}

// TestLabels: the labels of collapsed files are read unchanged, including those of other tools, of pools and of virtual
// threads.
func TestLabels(t *testing.T) {
	const text = "[pool-* tid=*];a.B.c_[0] 1\n[virtual #?];a.B.c_[1];memcpy;do_syscall_64_[k] 2\n" +
		"[x y virtual #7];[truncated: not stopped];a.B.d_[j];[parked: java.lang.Object] 3\n"
	f := reading(t, []byte(text), Options{})
	if got := collapsedOf(t, f, SumOptions{Threads: true}); got != text {
		t.Errorf("%s, was %s", got, text)
	}
	parked := Filter{States: []profile.State{profile.Parked}}
	part, err := parked.Of(f)
	if err != nil {
		t.Fatal(err)
	}
	if got := collapsedOf(t, part, SumOptions{}); got != "[truncated: not stopped];a.B.d_[j];[parked: "+
		"java.lang.Object] 3\n" {
		t.Error(got)
	}
}

// TestTooLarge: if a sum of counts overflows, reading ends with an error. The sum does not become negative.
func TestTooLarge(t *testing.T) {
	samples := cpuSamples()[:2]
	for i := range samples {
		samples[i].Count = 1 << 62
	}
	f := reading(t, pprofOf(t, samples), Options{})
	if _, err := Sum(f, SumOptions{}); !IsBad(err) || !strings.Contains(err.Error(), "too large together") {
		t.Errorf("%v", err)
	}
}

// renumbered gives stacks different numbers in each reading.
type renumbered struct {
	Source
	samples  []profile.Sample
	readings uint64
}

func (r *renumbered) Each(visit func(*profile.Sample) error) error {
	r.readings++
	for i := range r.samples {
		s := r.samples[i]
		s.StackNumber = (uint64(i)+r.readings)%uint64(len(r.samples)) + 1
		if err := visit(&s); err != nil {
			return err
		}
	}
	return nil
}

// TestFilterTwice: a stack's number in one reading means nothing in the next reading.
func TestFilterTwice(t *testing.T) {
	all := cpuSamples()[:2]
	src := &renumbered{Source: reading(t, jfrOf(t, profile.ModeCPU, profile.Samples, all), Options{}), samples: all}
	p, err := (&Filter{Include: regexp.MustCompile("sell$")}).Of(src)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		var got []string
		if err := p.Each(func(s *profile.Sample) error {
			got = append(got, s.Stack.Frames[0].Func.Name)
			return nil
		}); err != nil || len(got) != 1 || got[0] != sellFn.Name {
			t.Errorf("reading %d: %q, %v", src.readings, got, err)
		}
	}
}
