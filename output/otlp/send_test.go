package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"goprof/output/ship"
	"goprof/output/ship/wire"
	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/protobuf"
	"goprof/testdata/shipped"
)

// TestSend: by HTTP and by gRPC, a compressed message arrives at OTLP's address. goprof notices if a server rejects
// profiles.
func TestSend(t *testing.T) {
	var got *http.Request
	var body, answer []byte
	address := shipped.Listen(t, func(w http.ResponseWriter, r *http.Request) {
		got = r
		body, _ = io.ReadAll(r.Body)
		if r.ProtoMajor == 2 {
			w.Header().Set("Grpc-Status", "0")
			w.Write([]byte{0, 0, 0, 0, byte(len(answer))})
		}
		w.Write(answer)
	})
	samples := shipped.Samples(100, false)
	for _, scheme := range []string{"http", "grpc"} {
		d, err := New(wire.Options{URL: scheme + "://" + address})
		if err != nil {
			t.Fatal(err)
		}
		message, err := d.Encode(shipped.Batch(samples, batch.GatherOptions{}))
		if err != nil {
			t.Fatal(err)
		}
		answer = nil
		if err := d.Send(context.Background(), message); err != nil {
			t.Fatal(err)
		}
		want, encoding := httpPath, got.Header.Get("Content-Encoding")
		if scheme == "grpc" {
			want, encoding, body = method, got.Header.Get("Grpc-Encoding"), body[5:]
		}
		if got.URL.Path != want || encoding != "gzip" {
			t.Errorf("%s %s", got.URL.Path, encoding)
		}
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(z)
		if err != nil {
			t.Fatal(err)
		}
		shipped.Same(t, scheme, shipped.OTLP(t, shipped.ParseOTLP(t, plain), "samples"),
			shipped.Collapsed(t, samples, profile.Samples))
		answer = protobuf.Bytes(nil, 1, protobuf.String(protobuf.Uint(nil, 1, 2), 2, "too old"))
		var partial *ship.Partial
		if err := d.Send(context.Background(), message); !errors.As(err, &partial) || partial.Rejected != 2 ||
			partial.Message != "too old" {
			t.Errorf("%s: %v", scheme, err)
		}
		answer = []byte("no message at all")
		if err := d.Send(context.Background(), message); err != nil {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}

// TestPartial: a server's claim to have rejected more profiles than a message has is ignored.
func TestPartial(t *testing.T) {
	for _, c := range []struct{ claims, counts uint64 }{{0, 0}, {1, 1}, {2, 2}, {1<<63 - 1, 2}, {1 << 63, 2}} {
		var p *ship.Partial
		errors.As(partial(protobuf.Bytes(nil, 1, protobuf.Uint(nil, 1, c.claims))), &p)
		if p == nil && c.counts > 0 || p != nil && p.Rejected != int64(c.counts) {
			t.Errorf("a claim of %d: %+v", c.claims, p)
		}
	}
}
