//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"goprof/output/pprof"
	"goprof/profile/protobuf"
	"goprof/sampler/events"
	"goprof/testdata/jvmtest"
	"goprof/testdata/shipped"
)

// engines are three servers at one address, which add up what they get.
type engines struct {
	t  *testing.T
	mu sync.Mutex
	// got is what each server has of each type of value ("alloc_space/bytes"); kinds are the names of the series.
	got   map[string]map[string]shipped.Counts
	kinds map[string]bool
}

func newEngines(t *testing.T) (e *engines, at string) {
	e = &engines{t: t, got: map[string]map[string]shipped.Counts{}, kinds: map[string]bool{}}
	return e, shipped.Listen(t, e.take)
}

func (e *engines) take(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		e.t.Error(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch r.URL.Path {
	case "/v1development/profiles":
		e.takeOTLP(body)
	case "/push.v1.PusherService/Push":
		each(e.t, body, 1, func(series []byte) {
			each(e.t, series, 1, e.takeLabel)
			each(e.t, series, 2, func(sample []byte) {
				each(e.t, sample, 1, func(data []byte) { e.takePProf("pyroscope", data) })
			})
		})
	case "/api/profiles/writeraw":
		var message struct {
			Series []struct {
				Samples []struct{ RawProfile string }
			}
		}
		if err := json.Unmarshal(body, &message); err != nil {
			e.t.Error(err)
		}
		for _, s := range message.Series {
			data, err := base64.StdEncoding.DecodeString(s.Samples[0].RawProfile)
			if err != nil {
				e.t.Error(err)
			}
			e.takePProf("parca", data)
		}
	default:
		e.t.Errorf("a request for %s", r.URL.Path)
	}
}

// each visits the fields of that number.
func each(t *testing.T, message []byte, id int, visit func([]byte)) {
	if err := protobuf.Each(message, func(f protobuf.Field) bool {
		if f.ID == id {
			visit(f.Data)
		}
		return true
	}); err != nil {
		t.Error(err)
	}
}

// takeLabel notes a series' kind.
func (e *engines) takeLabel(pair []byte) {
	name := ""
	each(e.t, pair, 1, func(text []byte) { name = string(text) })
	each(e.t, pair, 2, func(text []byte) {
		if name == "__name__" {
			e.kinds[string(text)] = true
		}
	})
}

func (e *engines) takeOTLP(body []byte) {
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		e.t.Error(err)
		return
	}
	message, err := io.ReadAll(z)
	if err != nil {
		e.t.Error(err)
	}
	r := shipped.ParseOTLP(e.t, message)
	for _, p := range r.ResourceProfiles[0].ScopeProfiles[0].Profiles {
		name, unit := r.Dictionary.StringTable[p.SampleType.TypeStrindex], r.Dictionary.StringTable[p.SampleType.UnitStrindex]
		e.add("otlp", name+"/"+unit, shipped.OTLP(e.t, r, name))
	}
}

func (e *engines) takePProf(server string, data []byte) {
	read, err := pprof.Read(bytes.NewReader(data))
	if err != nil {
		e.t.Error(err)
		return
	}
	for _, typ := range read.Types {
		name, _, _ := strings.Cut(typ, "/")
		e.add(server, typ, shipped.PProf(e.t, data, name))
	}
}

func (e *engines) add(server, typ string, counts shipped.Counts) {
	if e.got[server] == nil {
		e.got[server] = map[string]shipped.Counts{}
	}
	all := e.got[server][typ]
	if all == nil {
		all = shipped.Counts{}
		e.got[server][typ] = all
	}
	for stack, n := range counts {
		if n != 0 { // a sample by perf_event carries no CPU time where the kernel had not charged its thread yet
			all[stack] += n
		}
	}
}

// has reports whether each server has samples of a type in a program.
func (e *engines) has(typ, program string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, server := range []string{"otlp", "pyroscope", "parca"} {
		if !strings.Contains(fmt.Sprint(e.got[server][typ]), program) {
			return false
		}
	}
	return true
}

// eventPrograms are the types of values, and for each the program that has them. All three use CPU time and allocate.
var eventPrograms = map[string]string{"cpu/nanoseconds": "truth.Allocating", "alloc_space/bytes": "truth.Allocating",
	"exceptions/count": "truth.Throws", "delay/nanoseconds": "truth.OneLock"}

// TestAgentEvents: events come to every server and into files as profiles of their own, the same everywhere, with the
// right types and units. What cannot be had is said and counted, and CPU time is recorded all the same.
func TestAgentEvents(t *testing.T) {
	if err := events.TryProbes(); err != nil {
		t.Skipf("this machine permits no probes: %v", err)
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		allocates := jvmtest.Start(t, jdk, "truth.Allocating", "-Xmx64m", "--", "30000000", "2")
		throws := jvmtest.Start(t, jdk, "truth.Throws", "-Xmx64m", "--", "sick")
		waits := jvmtest.Start(t, jdk, "truth.OneLock", "-Xmx64m", "--", "sick", "monitor")
		to, at := newEngines(t)
		port := freePort(t)
		a := startAgent(t, "--match", "main=Allocating", "--match", "main=Throws", "--match", "main=OneLock",
			"--event", "cpu,alloc=64k,exceptions,lock,nosuch", "--event-match", "Allocating|Throws|OneLock",
			"--rate", "200", "--listen", port, "--otlp", "http://"+at, "--pyroscope", "http://"+at, "--parca", "http://"+at)
		end := time.Now().Add(agentLimit)
		for typ, program := range eventPrograms {
			for !to.has(typ, program) && time.Now().Before(end) {
				time.Sleep(50 * time.Millisecond)
			}
		}
		for _, jvm := range []*jvmtest.JVM{allocates, throws, waits} {
			jvm.Kill()
		}
		a.awaitDelivered(t, port, 3)
		told := eventMetrics(t, port)
		a.end(t)
		a.checkEvents(t, to)
		for file, pid := range map[string]int{"alloc": allocates.PID, "exceptions": throws.PID, "lock": waits.PID} {
			names, err := filepath.Glob(filepath.Join(a.dir, fmt.Sprintf("*-%d-*.%s.pb.gz", pid, file)))
			if err != nil || len(names) == 0 {
				t.Errorf("no file of %s: %v", file, err)
			}
		}
		for _, pid := range []int{allocates.PID, throws.PID, waits.PID} {
			if len(a.filesOf(t, pid)) == 0 {
				t.Errorf("process %d is not recorded", pid)
			}
			line := regexp.MustCompile(fmt.Sprintf(`process %d \([^)]*\) is recorded without event nosuch: there is no`, pid))
			if n := len(line.FindAllString(a.log.String(), -1)); n != 1 {
				t.Errorf("it was said %d times\n%s", n, &a.log)
			}
		}
		if told["refused nosuch"] == 0 || told["samples alloc"] == 0 || told["refused alloc"] != 0 {
			t.Errorf("metrics: %v", told)
		}
	})
}

// awaitDelivered waits until so many JVMs have ended and nothing waits for a server: an agent that ends does not wait
// long for one. A JVM's last batch comes a little after its end is counted.
func (a *liveAgent) awaitDelivered(t *testing.T, port string, ended float64) {
	t.Helper()
	quiet := 0
	for end := time.Now().Add(agentLimit); ; time.Sleep(100 * time.Millisecond) {
		told, queued := scrape(t, port), 0.0
		for name, n := range told {
			if strings.HasPrefix(name, "goprof_agent_ship_queued{") {
				queued += n
			}
		}
		if quiet++; told["goprof_agent_jvms_ended_total"] < ended || queued > 0 {
			quiet = 0
		}
		if quiet > 20 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%v batches wait\n%s", queued, &a.log)
		}
	}
}

// checkEvents compares what the servers have with each other, and with what the programs do.
func (a *liveAgent) checkEvents(t *testing.T, to *engines) {
	t.Helper()
	to.mu.Lock()
	defer to.mu.Unlock()
	for typ, program := range eventPrograms {
		all := to.got["otlp"][typ]
		if !strings.Contains(fmt.Sprint(all), program) {
			t.Errorf("%s: nothing of %s: %v\n%s", typ, program, all, &a.log)
		}
		shipped.Same(t, "pyroscope's "+typ, to.got["pyroscope"][typ], all)
		shipped.Same(t, "parca's "+typ, to.got["parca"][typ], all)
	}
	for _, kind := range []string{"process_cpu", "memory", "exceptions", "mutex"} {
		if !to.kinds[kind] {
			t.Errorf("pyroscope has %v, and no %s", to.kinds, kind)
		}
	}
	if n := len(to.got["otlp"]["alloc_samples/count"]); n == 0 {
		t.Error("how many samples of allocations there are is not told")
	}
}

// eventMetrics are the metrics of events: "refused nosuch".
func eventMetrics(t *testing.T, port string) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for name, value := range scrape(t, port) {
		if m := regexp.MustCompile(`^goprof_agent_event_(\w+)_total\{event="(\w+)"\}$`).FindStringSubmatch(name); m != nil {
			all[m[1]+" "+m[2]] = value
		}
	}
	return all
}
