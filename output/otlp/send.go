package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"sync"

	"goprof/output/ship"
	"goprof/output/ship/wire"
	"goprof/profile/batch"
	"goprof/profile/protobuf"
	"goprof/profile/resource"
)

const (
	httpPath = "/v1development/profiles"
	method   = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
)

type Destination struct{ *wire.Client }

// New makes a Destination. It makes no connection.
func New(o wire.Options) (*Destination, error) {
	o.Kind, o.Path, o.Method = "otlp", httpPath, method
	client, err := wire.New(o)
	return &Destination{client}, err
}

// Encode returns a compressed message.
func (d *Destination) Encode(b *batch.Batch) ([]byte, error) { return pack(Encode(b)) }

// compressors are idle gzip writers. A new one takes a megabyte.
var compressors = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

func pack(message []byte) ([]byte, error) {
	var to bytes.Buffer
	z := compressors.Get().(*gzip.Writer)
	defer compressors.Put(z)
	defer z.Reset(io.Discard) // so that it does not keep the message
	z.Reset(&to)
	if _, err := z.Write(message); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return to.Bytes(), nil
}

// Send delivers a message. After the answer 500, OTLP forbids sending a message again.
func (d *Destination) Send(ctx context.Context, message []byte) error {
	r := &wire.Request{Body: message, Type: "application/x-protobuf", Gzip: true, Is500Final: true}
	answer, err := d.Deliver(ctx, r)
	if err != nil {
		return err
	}
	return partial(answer)
}

// partial returns which samples the server has rejected. It is nil if the server took everything
// (ExportProfilesPartialSuccess).
func partial(answer []byte) error {
	var p ship.Partial
	err := protobuf.Each(answer, func(f protobuf.Field) bool {
		if f.ID != 1 {
			return true
		}
		protobuf.Each(f.Data, func(f protobuf.Field) bool {
			switch f.ID {
			case 1:
				p.Rejected = int64(min(f.Number, mostProfiles))
			case 2:
				p.Message = resource.Clean(string(f.Data), maxMessage)
			}
			return true
		})
		return true
	})
	if err != nil || p.Rejected == 0 {
		return nil // even an answer that cannot be decoded is a success: its status says so
	}
	return &p
}

// mostProfiles is the number of profiles in a message (Encode). A server's claim to have left out more is ignored.
const mostProfiles = 2

// maxMessage bounds how much of a server's message is shown.
const maxMessage = 300
