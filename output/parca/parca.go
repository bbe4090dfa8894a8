// Package parca sends batches to Parca by its ProfileStoreService/WriteRaw, as gRPC or as JSON over HTTP.
//
// Profiles have pprof's format, with all facts about threads, because Parca stores labels of samples as columns.
package parca

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"goprof/output/pprof"
	"goprof/output/ship/wire"
	"goprof/profile/batch"
	"goprof/profile/protobuf"
	"goprof/profile/resource"
)

const (
	path   = "/api/profiles/writeraw" // the gateway for the same call
	method = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"
)

type Destination struct{ *wire.Client }

// New makes a Destination. It makes no connection.
func New(o wire.Options) (*Destination, error) {
	o.Kind, o.Path, o.Method = "parca", path, method
	client, err := wire.New(o)
	return &Destination{client}, err
}

// Encode returns a WriteRawRequest, as gRPC or as JSON.
func (d *Destination) Encode(b *batch.Batch) ([]byte, error) {
	data, err := pprof.OfBatch(b, nil)
	if err != nil {
		return nil, err
	}
	labels := append([]resource.Label{{Name: "__name__", Value: b.Kind()}}, b.Resource.Labels()...)
	if d.IsGRPC() {
		return message(labels, data), nil
	}
	return text(labels, data)
}

func message(labels []resource.Label, data []byte) []byte {
	var set []byte
	for _, l := range labels {
		set = protobuf.Bytes(set, 1, protobuf.String(protobuf.String(nil, 1, l.Name), 2, l.Value))
	}
	series := protobuf.Bytes(nil, 1, set)
	series = protobuf.Bytes(series, 2, protobuf.Bytes(nil, 1, data))
	return protobuf.Bytes(nil, 2, series)
}

// text returns a WriteRawRequest as JSON.
func text(labels []resource.Label, data []byte) ([]byte, error) {
	type label struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	var list []label
	for _, l := range labels {
		list = append(list, label(l))
	}
	return json.Marshal(map[string]any{"series": []any{map[string]any{
		"labels":  map[string]any{"labels": list},
		"samples": []any{map[string]any{"rawProfile": base64.StdEncoding.EncodeToString(data)}},
	}}})
}

func (d *Destination) Send(ctx context.Context, message []byte) error {
	_, err := d.Deliver(ctx, &wire.Request{Body: message, Type: "application/json"})
	return err
}
