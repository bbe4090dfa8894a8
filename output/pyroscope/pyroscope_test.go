package pyroscope

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	pb "github.com/google/pprof/profile"

	"goprof/output/ship/wire"
	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/protobuf"
	"goprof/testdata/shipped"
)

// pushed reads a PushRequest (push/v1/push.proto).
func pushed(t *testing.T, message []byte) (labels map[string]string, data []byte) {
	t.Helper()
	labels = make(map[string]string)
	each := func(message []byte, visit func(protobuf.Field)) {
		if err := protobuf.Each(message, func(f protobuf.Field) bool { visit(f); return true }); err != nil {
			t.Fatal(err)
		}
	}
	each(message, func(series protobuf.Field) {
		each(series.Data, func(f protobuf.Field) {
			texts := make(map[int]string)
			each(f.Data, func(f protobuf.Field) { texts[f.ID] = string(f.Data) })
			if f.ID == 1 {
				labels[texts[1]] = texts[2]
			} else {
				data = []byte(texts[1])
			}
		})
	})
	return labels, data
}

// TestPush: the request has the path and headers of Connect, the labels, and a profile with the stacks and counts of
// our collapsed text. It has names of pools and not of threads: Pyroscope makes a series for each name.
func TestPush(t *testing.T) {
	var got *http.Request
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
	}))
	defer s.Close()
	d, err := New(wire.Options{URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	for _, wall := range []bool{false, true} {
		samples := shipped.Samples(300, wall)
		message, err := d.Encode(shipped.Batch(samples, batch.GatherOptions{}))
		if err == nil {
			err = d.Send(context.Background(), message)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got.URL.Path != "/push.v1.PusherService/Push" || got.Header.Get("Content-Type") != "application/proto" ||
			got.Header.Get("Connect-Protocol-Version") != "1" {
			t.Errorf("%v %v", got.URL, got.Header)
		}
		labels, data := pushed(t, body)
		name, second, weight := "process_cpu", "cpu", profile.CPUTime
		if wall {
			name, second, weight = "wall", "wall", profile.WallTime
		}
		if labels["__name__"] != name || labels["service_name"] != "shop" || labels["host_name"] != "host-7" ||
			len(labels) != 3 {
			t.Errorf("%q", labels)
		}
		shipped.Same(t, "samples", shipped.PProf(t, data, "samples"), shipped.Collapsed(t, samples, profile.Samples))
		shipped.Same(t, second, shipped.PProf(t, data, second), shipped.Collapsed(t, samples, weight))
		checkThreads(t, data)
	}
}

func checkThreads(t *testing.T, data []byte) {
	t.Helper()
	p, err := pb.ParseData(data)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, s := range p.Sample {
		seen[strings.Join(s.Label["thread"], ",")] = true
		if len(s.NumLabel["tid"])+len(s.Label["virtual"]) > 0 {
			t.Errorf("a label of one thread: %v %v", s.Label, s.NumLabel)
		}
	}
	if len(seen) != 3 || !seen["pool-1-thread-*"] || !seen["GC Thread#*"] || !seen["virtual"] {
		t.Errorf("%v", seen)
	}
}
