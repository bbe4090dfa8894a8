package wire

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"goprof/output/ship"
	"goprof/profile/protobuf"
	"goprof/profile/resource"
)

// gRPC status codes.
const (
	codeOK                = 0
	codeCanceled          = 1
	codeUnknown           = 2
	codeDeadlineExceeded  = 4
	codePermissionDenied  = 7
	codeResourceExhausted = 8
	codeAborted           = 10
	codeOutOfRange        = 11
	codeUnimplemented     = 12
	codeInternal          = 13
	codeUnavailable       = 14
	codeDataLoss          = 15
	codeUnauthenticated   = 16
)

const (
	frameHead       = 5 // of a message: whether it is compressed, and its length
	frameCompressed = 1

	statusHeader        = "Grpc-Status"
	statusMessageHeader = "Grpc-Message"
	statusDetailsHeader = "Grpc-Status-Details-Bin"

	retryInfo      = "google.rpc.RetryInfo"
	maxDetails     = 16 << 10
	longestSeconds = 86400 // the longest wait that a server may ask for
)

// Call makes a unary gRPC call, and returns the answer's message.
func (c *Client) Call(ctx context.Context, r *Request) ([]byte, error) {
	header, err := c.header(r)
	if err != nil {
		return nil, err
	}
	header.Set("Content-Type", "application/grpc")
	header.Set("Te", "trailers")
	body := make([]byte, frameHead, frameHead+len(r.Body))
	if r.Gzip {
		body[0] = frameCompressed
		header.Set("Grpc-Encoding", "gzip")
	}
	binary.BigEndian.PutUint32(body[1:], uint32(len(r.Body)))
	response, err := c.do(ctx, header, append(body, r.Body...))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer)) // trailers exist only after the body was read
	if response.StatusCode != http.StatusOK {
		return nil, statusFailure(response, answer, r.Is500Final)
	}
	if err != nil {
		return nil, mayHelpAgain(err)
	}
	if err := callFailure(response); err != nil {
		if r.Gzip && isAboutGzip(response) {
			return c.callPlain(ctx, r)
		}
		return nil, err
	}
	if len(answer) >= frameHead && answer[0] == 0 {
		return answer[frameHead:], nil
	}
	return nil, nil
}

// isAboutGzip reports whether a server has refused a message because it is compressed.
func isAboutGzip(r *http.Response) bool {
	return strings.Contains(r.Trailer.Get(statusMessageHeader)+r.Header.Get(statusMessageHeader), "grpc-encoding")
}

// maxPlain bounds the size of an unpacked message.
const maxPlain = 128 << 20

// callPlain repeats the call without compression.
func (c *Client) callPlain(ctx context.Context, r *Request) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(r.Body))
	if err != nil {
		return nil, ship.Final("the message cannot be unpacked: %w", err)
	}
	plain := *r
	if plain.Body, err = io.ReadAll(io.LimitReader(z, maxPlain+1)); err != nil || len(plain.Body) > maxPlain {
		return nil, ship.Final("the message cannot be unpacked: %w", err)
	}
	plain.Gzip = false
	return c.Call(ctx, &plain)
}

// callFailure returns the meaning of a call's status for the message. It is nil for a success.
func callFailure(r *http.Response) error {
	status := r.Trailer
	if status.Get(statusHeader) == "" {
		status = r.Header // the answer has only trailers
	}
	code, err := strconv.Atoi(status.Get(statusHeader))
	if err != nil {
		return &ship.Failure{Err: fmt.Errorf("the server does not speak gRPC: its answer has no status")}
	}
	if code == codeOK {
		return nil
	}
	text := status.Get(statusMessageHeader)
	if plain, err := url.PathUnescape(text); err == nil {
		text = plain
	}
	f := &ship.Failure{Err: fmt.Errorf("the server says gRPC code %d: %s", code, resource.Clean(text, maxExcerpt))}
	wait, asked := retryDelay(status.Get(statusDetailsHeader))
	f.After = wait
	switch code {
	case codeCanceled, codeDeadlineExceeded, codeAborted, codeOutOfRange, codeUnavailable, codeDataLoss:
	case codePermissionDenied, codeUnauthenticated, codeUnimplemented: // the fault is in the connection to the server
	case codeResourceExhausted:
		f.Doubtful = !asked
	case codeUnknown, codeInternal:
		f.Doubtful = true
	default:
		f.Final = true
	}
	return f
}

// retryDelay returns how long the server asks goprof to wait: a google.rpc.Status with a RetryInfo among its details.
func retryDelay(text string) (wait time.Duration, asked bool) {
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil || len(data) > maxDetails {
		return 0, false
	}
	protobuf.Each(data, func(f protobuf.Field) bool {
		if f.ID == 3 {
			if d, ok := retryDetail(f.Data); ok {
				wait, asked = d, true
			}
		}
		return !asked
	})
	return wait, asked
}

// retryDetail reads one detail, an Any.
func retryDetail(data []byte) (wait time.Duration, ok bool) {
	var value []byte
	protobuf.Each(data, func(f protobuf.Field) bool {
		switch f.ID {
		case 1:
			ok = strings.HasSuffix(string(f.Data), "/"+retryInfo)
		case 2:
			value = f.Data
		}
		return true
	})
	protobuf.Each(value, func(f protobuf.Field) bool {
		if f.ID == 1 {
			wait = duration(f.Data)
		}
		return true
	})
	return wait, ok
}

func duration(data []byte) (d time.Duration) {
	protobuf.Each(data, func(f protobuf.Field) bool {
		switch {
		case f.ID == 1 && f.Number <= longestSeconds:
			d += time.Duration(f.Number) * time.Second
		case f.ID == 2 && f.Number < uint64(time.Second):
			d += time.Duration(f.Number)
		}
		return true
	})
	return d
}
