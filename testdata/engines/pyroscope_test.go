package engines

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"connectrpc.com/connect"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"

	"goprof/output/pyroscope"
	"goprof/output/ship/wire"
	"goprof/profile"
	"goprof/testdata/shipped"
)

// pusher is Pyroscope's push service in memory, by its published API.
type pusher struct {
	mu     sync.Mutex
	series []*pushv1.RawProfileSeries
	fails  int // how often it has no room
}

func (p *pusher) Push(_ context.Context, r *connect.Request[pushv1.PushRequest],
) (*connect.Response[pushv1.PushResponse], error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails > 0 {
		p.fails--
		return nil, connect.NewError(connect.CodeResourceExhausted, nil)
	}
	p.series = append(p.series, r.Msg.Series...)
	return connect.NewResponse(&pushv1.PushResponse{}), nil
}

// TestPyroscope: the service of Pyroscope's published API modules, with Connect's own server, decodes the messages,
// by HTTP and by gRPC.
func TestPyroscope(t *testing.T) {
	for _, scheme := range []string{"http", "grpc"} {
		p := &pusher{fails: 1}
		mux := http.NewServeMux()
		mux.Handle(pushv1connect.NewPusherServiceHandler(p))
		s := httptest.NewUnstartedServer(mux)
		s.Config.Protocols = new(http.Protocols)
		s.Config.Protocols.SetHTTP1(true)
		s.Config.Protocols.SetUnencryptedHTTP2(true)
		s.Start()
		defer s.Close()
		to, err := pyroscope.New(wire.Options{URL: scheme + "://" + s.Listener.Addr().String()})
		if err != nil {
			t.Fatal(err)
		}
		samples := shipped.Samples(500, false)
		deliver(t, samples, to)
		got := make(map[string]shipped.Counts)
		for _, series := range p.series {
			labels := make(map[string]string)
			for _, l := range series.Labels {
				labels[l.Name] = l.Value
			}
			if labels["__name__"] != "process_cpu" || labels["service_name"] != "shop" {
				t.Errorf("%v", labels)
			}
			for _, what := range []string{"samples", "cpu"} {
				if got[what] == nil {
					got[what] = make(shipped.Counts)
				}
				for stack, n := range shipped.PProf(t, series.Samples[0].RawProfile, what) {
					got[what][stack] += n
				}
			}
		}
		shipped.Same(t, scheme, got["samples"], shipped.Collapsed(t, samples, profile.Samples))
		shipped.Same(t, scheme, got["cpu"], shipped.Collapsed(t, samples, profile.CPUTime))
	}
}
