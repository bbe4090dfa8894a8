package wire

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options set where a server is, and how goprof connects to it.
type Options struct {
	// Kind is the kind of server, with which its Client's Name begins.
	Kind string
	// URL begins with http://, https://, grpc:// or grpcs:// (gRPC without and with TLS).
	URL string
	// Path is the server's path for messages by HTTP, unless the URL already ends in it. Method is the method of a gRPC
	// call: /package.Service/Method.
	Path, Method string
	// HeaderFile has lines "Name: value". It is read before each call, so that a new token needs no restart.
	HeaderFile string
	// CAFile has certificates in PEM that are trusted in addition to the system's.
	CAFile string
	// CertFile and KeyFile are goprof's own certificate, in PEM. They are read at each handshake.
	CertFile, KeyFile string
	// Agent is the User-Agent.
	Agent string
	// Dial makes a connection. Nil is the default.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Client makes calls to one server. Its methods are safe for concurrent use.
type Client struct {
	url     *url.URL // with the path
	isGRPC  bool
	o       Options
	http    *http.Client
	headers *headerFile
}

// New checks options. It makes no connection.
func New(o Options) (*Client, error) {
	u, err := parse(o.URL)
	if err != nil {
		return nil, err
	}
	c := &Client{url: u, o: o, isGRPC: strings.HasPrefix(u.Scheme, "grpc"), headers: &headerFile{name: o.HeaderFile}}
	if _, err := c.headers.read(); err != nil {
		return nil, err
	}
	switch u.Scheme {
	case "grpc":
		u.Scheme = "http"
	case "grpcs":
		u.Scheme = "https"
	}
	path := o.Path
	if c.isGRPC {
		path = o.Method
	}
	if !strings.HasSuffix(u.Path, path) {
		u.Path = strings.TrimSuffix(u.Path, "/") + path
	}
	transport, err := c.transport()
	if err != nil {
		return nil, err
	}
	c.http = &http.Client{Transport: transport,
		// A redirect would send headers with tokens to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return c, nil
}

func parse(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	text = shown(text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%q is no URL: http://HOST:PORT, https://, grpc:// or grpcs://", text)
	case u.User != nil:
		return nil, fmt.Errorf("the URL of %s has a password in it, which ps shows to everybody: write it into a file of "+
			"headers (Authorization: Basic ...)", u.Host)
	case u.Host == "" || u.Hostname() == "":
		return nil, fmt.Errorf("%q has no host: http://HOST:PORT, https://, grpc:// or grpcs://", text)
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("%q has a query, which is not for such URLs", text)
	}
	switch u.Scheme {
	case "http", "https", "grpc", "grpcs":
		return u, nil
	}
	return nil, fmt.Errorf("%q: no way to send begins with %q: http://HOST:PORT, https://, grpc:// or grpcs://", text,
		u.Scheme)
}

// shown returns a URL for a message to the user, without parts that may be a password or a token.
func shown(text string) string {
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		text = "..." + text[at:]
	}
	if before, _, found := strings.Cut(text, "?"); found {
		text = before + "?..."
	}
	return text
}

// Name returns the kind of server and the URL: "otlp http://collector:4318".
func (c *Client) Name() string { return c.o.Kind + " " + c.o.URL }

// IsGRPC reports whether the URL asks for gRPC.
func (c *Client) IsGRPC() bool { return c.isGRPC }

const (
	dialTimeout = 10 * time.Second
	idleTimeout = 90 * time.Second
)

func (c *Client) transport() (*http.Transport, error) {
	dial := c.o.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	config, err := c.tls()
	if err != nil {
		return nil, err
	}
	t := &http.Transport{DialContext: dial, TLSClientConfig: config, TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout: idleTimeout, MaxResponseHeaderBytes: maxAnswer, MaxIdleConnsPerHost: 2, DisableCompression: true,
		Protocols: new(http.Protocols)}
	switch {
	case c.isGRPC && c.url.Scheme == "http":
		t.Protocols.SetUnencryptedHTTP2(true)
	case c.isGRPC:
		t.Protocols.SetHTTP2(true)
	default:
		t.Proxy = http.ProxyFromEnvironment
		t.Protocols.SetHTTP1(true)
		t.Protocols.SetHTTP2(true)
	}
	return t, nil
}
