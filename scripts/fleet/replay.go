package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"goprof/output/otlp"
	"goprof/output/parca"
	"goprof/output/pprof"
	"goprof/output/pyroscope"
	"goprof/output/recording"
	"goprof/output/ship"
	"goprof/output/ship/wire"
	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/resource"
)

// plan is how many JVMs replay what was recorded.
type plan struct {
	jvms, services, batches int
	merge                   int
	every                   time.Duration
}

// server is a kind of server. Where labels is set, what it leaves of a sample's thread makes a series of its own.
type server struct {
	name   string
	make   func(wire.Options) (ship.Destination, error)
	labels func(*profile.Sample)
}

func maker[D ship.Destination](of func(wire.Options) (D, error)) func(wire.Options) (ship.Destination, error) {
	return func(o wire.Options) (ship.Destination, error) { return of(o) }
}

var kinds = []server{
	{"otlp", maker(otlp.New), nil},
	{"pyroscope", maker(pyroscope.New), pprof.PoolOnly},
	{"parca", maker(parca.New), nil},
}

// readFolder reads an agent's files: the batches of each process, in the order of time, each of so many files.
func readFolder(dir string, merge int) (all [][]*batch.Batch, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.pb.gz"))
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("there are no files of an agent in %s (%v)", dir, err)
	}
	slices.Sort(names)
	files := map[int][]*recording.File{}
	for _, name := range names {
		f, err := recording.Open(name, recording.Options{})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		defer f.Close()
		pid := f.Info().Meta.PID
		files[pid] = append(files[pid], f)
	}
	for _, pid := range slices.Sorted(maps.Keys(files)) {
		var jvm []*batch.Batch
		for some := range slices.Chunk(files[pid], max(merge, 1)) {
			b, err := batchOf(some)
			if err != nil {
				return nil, err
			}
			jvm = append(jvm, b)
		}
		all = append(all, jvm)
	}
	return all, nil
}

func batchOf(files []*recording.File) (*batch.Batch, error) {
	g := batch.NewGatherer(batch.GatherOptions{})
	for _, f := range files {
		if err := f.Each(func(s *profile.Sample) error { g.Add(s); return nil }); err != nil {
			return nil, err
		}
	}
	m := files[0].Info().Meta
	return g.Take(nil, m, m.Start, m.Start.Add(m.Duration)), nil
}

// samplesOf is how many looks a batch has, on average.
func samplesOf(recorded [][]*batch.Batch) float64 {
	looks, batches := int64(0), 0
	for _, jvm := range recorded {
		for _, b := range jvm {
			looks += b.Looks()
			batches++
		}
	}
	return float64(looks) / float64(batches)
}

type result struct {
	message, wire int64
	series        int
	cpu           time.Duration
}

// replay sends the batches of all JVMs to a server of that kind.
func (p plan) replay(kind server, recorded [][]*batch.Batch) (r result, err error) {
	var bytes atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		io.Copy(io.Discard, q.Body)
	}))
	s.Listener = counting{s.Listener, &bytes}
	s.Start()
	defer s.Close()
	d, err := kind.make(wire.Options{URL: s.URL})
	if err != nil {
		return r, err
	}
	series := map[string]bool{}
	before := cpuTime()
	for n := range p.batches {
		for jvm := range p.jvms {
			from := recorded[jvm%len(recorded)]
			b := *from[(jvm/len(recorded)+n)%len(from)]
			b.Resource = p.resource(jvm)
			message, err := d.Encode(&b)
			if err != nil {
				return r, err
			}
			if err := d.Send(context.Background(), message); err != nil {
				return r, err
			}
			r.message += int64(len(message))
			kind.count(series, &b)
		}
	}
	r.cpu, r.wire, r.series = cpuTime()-before, bytes.Load(), len(series)
	return r, nil
}

// resource is whose the batches of a JVM are, as an agent says it in a cluster.
func (p plan) resource(jvm int) (a resource.Attributes) {
	a.Set(resource.ServiceName, fmt.Sprintf("service-%d", jvm%p.services))
	a.Set(resource.ServiceVersion, "1.4.2")
	a.Set(resource.ServiceNamespace, "shop")
	a.SetInt(resource.ProcessPID, int64(1000+jvm))
	a.Set(resource.ProcessOwner, "app")
	a.Set(resource.RuntimeName, "OpenJDK Runtime Environment")
	a.Set(resource.RuntimeVersion, "17.0.15+6")
	a.Set(resource.ContainerID, fmt.Sprintf("%064x", jvm))
	a.Set(resource.PodUID, fmt.Sprintf("%08x-0000-4000-8000-000000000000", jvm))
	a.Set(resource.HostName, fmt.Sprintf("node-%d", jvm/50))
	return a
}

func (k *server) count(series map[string]bool, b *batch.Batch) {
	labels := fmt.Sprint(b.Resource.Labels())
	if k.labels == nil {
		series[labels] = true
		return
	}
	for i := range b.Samples {
		one := profile.Sample{Thread: b.Samples[i].Thread}
		k.labels(&one)
		series[labels+fmt.Sprint(one.Thread.Name, one.Thread.JavaName)] = true
	}
}

type counting struct {
	net.Listener
	bytes *atomic.Int64
}

func (c counting) Accept() (net.Conn, error) {
	one, err := c.Listener.Accept()
	return &counted{one, c.bytes}, err
}

type counted struct {
	net.Conn
	bytes *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.bytes.Add(int64(n))
	return n, err
}

// cpuTime is what this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
