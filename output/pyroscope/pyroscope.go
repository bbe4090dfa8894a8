// Package pyroscope sends batches to Grafana Pyroscope by its push API, push.v1.PusherService/Push.
//
// The call uses the Connect protocol over HTTP. Servers accept it since Pyroscope 1.0, and present clients use it. The
// older /ingest also accepts pprof, but takes the labels from a name in the query, and guesses types. Pyroscope also
// accepts OTLP. Use OTLP for threads and single times, and this package for Pyroscope's usual queries
// (process_cpu:cpu:nanoseconds).
//
// Pyroscope makes a series for each value of each label of a sample. So goprof sends the pool of a thread in place of
// the thread.
package pyroscope

import (
	"context"
	"net/http"

	"goprof/output/pprof"
	"goprof/output/ship/wire"
	"goprof/profile/batch"
	"goprof/profile/protobuf"
	"goprof/profile/resource"
)

const path = "/push.v1.PusherService/Push"

type Destination struct{ *wire.Client }

// New makes a Destination. It makes no connection. For a server with several tenants, the tenant is a header,
// X-Scope-OrgID.
func New(o wire.Options) (*Destination, error) {
	o.Kind, o.Path, o.Method = "pyroscope", path, path
	client, err := wire.New(o)
	return &Destination{client}, err
}

// Encode makes a PushRequest.
func (d *Destination) Encode(b *batch.Batch) ([]byte, error) {
	data, err := pprof.OfBatch(b, pprof.PoolOnly)
	if err != nil {
		return nil, err
	}
	var series []byte
	labels := append([]resource.Label{{Name: "__name__", Value: b.Kind()}}, b.Resource.Labels()...)
	for _, l := range labels {
		series = protobuf.Bytes(series, 1, protobuf.String(protobuf.String(nil, 1, l.Name), 2, l.Value))
	}
	series = protobuf.Bytes(series, 2, protobuf.Bytes(nil, 1, data))
	return protobuf.Bytes(nil, 1, series), nil
}

// Send delivers a message. Failures in Connect have the statuses of HTTP.
func (d *Destination) Send(ctx context.Context, message []byte) error {
	_, err := d.Deliver(ctx, &wire.Request{Body: message, Type: "application/proto",
		Header: http.Header{"Connect-Protocol-Version": {"1"}}})
	return err
}
