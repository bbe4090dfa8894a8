package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"goprof/output/ship"
	"goprof/profile/resource"
)

const maxAnswer = 64 << 10

// Request is a message that is being sent.
type Request struct {
	Body   []byte
	Type   string      // Content-Type
	Gzip   bool        // Body is compressed
	Header http.Header // only for HTTP
	// Is500Final: the protocol forbids sending a message again after a 500.
	Is500Final bool
}

// Deliver sends a message by gRPC or HTTP, depending on the URL, and returns the answer.
func (c *Client) Deliver(ctx context.Context, r *Request) ([]byte, error) {
	if c.isGRPC {
		return c.Call(ctx, r)
	}
	return c.Post(ctx, r)
}

// Post sends a message by HTTP, and returns the answer.
func (c *Client) Post(ctx context.Context, r *Request) ([]byte, error) {
	header, err := c.header(r)
	if err != nil {
		return nil, err
	}
	maps.Copy(header, r.Header)
	if r.Gzip {
		header.Set("Content-Encoding", "gzip")
	}
	response, err := c.do(ctx, header, r.Body)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if response.StatusCode/100 != 2 {
		return nil, statusFailure(response, answer, r.Is500Final)
	}
	if err != nil {
		return nil, mayHelpAgain(err)
	}
	return answer, nil
}

func (c *Client) header(r *Request) (http.Header, error) {
	header, err := c.headers.read()
	if err != nil {
		return nil, err
	}
	header.Set("Content-Type", r.Type)
	header.Set("User-Agent", c.o.Agent)
	return header, nil
}

func (c *Client) do(ctx context.Context, header http.Header, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url.String(), bytes.NewReader(body))
	if err != nil {
		return nil, mayHelpAgain(err)
	}
	request.Header = header
	if host := header.Get("Host"); host != "" {
		request.Host = host
	}
	response, err := c.http.Do(request)
	if err != nil {
		// Otherwise a connection to a dead peer would be used again for as long as the kernel waits.
		c.http.CloseIdleConnections()
		return nil, mayHelpAgain(err)
	}
	return response, nil
}

// mayHelpAgain returns a failure after which sending again may help. net/http begins its errors with the method and the
// URL. These are cut off, because the destination's name already has them.
func mayHelpAgain(err error) error {
	if inner := errors.Unwrap(err); inner != nil && strings.HasPrefix(err.Error(), "Post ") {
		err = inner
	}
	return &ship.Failure{Err: err}
}

// statusFailure returns the meaning of an unsuccessful answer for the message.
func statusFailure(r *http.Response, answer []byte, is500Final bool) error {
	f := &ship.Failure{Err: fmt.Errorf("the server says %d%s", r.StatusCode, excerpt(r, answer)),
		After: retryAfter(r.Header.Get("Retry-After"), time.Now())}
	switch r.StatusCode {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable,
		http.StatusGatewayTimeout:
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed,
		http.StatusProxyAuthRequired: // the fault is in the connection to the server
	default:
		switch {
		case r.StatusCode/100 == 3: // the fault is in the connection to the server
		case r.StatusCode/100 == 5 && !is500Final:
			f.Doubtful = true
		default:
			f.Final = true
		}
	}
	return f
}

// maxExcerpt bounds how much of an answer is shown.
const maxExcerpt = 300

// excerpt returns the beginning of an answer, if the answer is text.
func excerpt(r *http.Response, answer []byte) string {
	if strings.Contains(r.Header.Get("Content-Type"), "proto") {
		return ""
	}
	text := strings.TrimSpace(resource.Clean(string(answer), maxExcerpt))
	if text == "" {
		return ""
	}
	return ": " + text
}

// retryAfter reads a header Retry-After: seconds, or a time.
func retryAfter(text string, now time.Time) time.Duration {
	if text == "" {
		return 0
	}
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}
