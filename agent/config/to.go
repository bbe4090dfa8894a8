//go:build linux

package config

import (
	"errors"
	"strconv"
	"strings"
)

// To says where batches are sent. Commas separate several URLs of one kind.
type To struct {
	OTLP, Pyroscope, Parca                      string
	OTLPHeaders, PyroscopeHeaders, ParcaHeaders string
	CA, Cert, Key                               string
	Spool                                       string
	SpoolMax                                    int64 // MB
	Relabel                                     string
}

// Any reports whether a destination is named.
func (t *To) Any() bool { return t.OTLP+t.Pyroscope+t.Parca != "" }

// servers returns a pointer to the URLs of an option, or nil if the option takes no URLs.
func (t *To) servers(option string) *string {
	switch option {
	case "otlp":
		return &t.OTLP
	case "pyroscope":
		return &t.Pyroscope
	case "parca":
		return &t.Parca
	}
	return nil
}

// idle returns the name of an option that has no effect without a destination, or "".
func (t *To) idle() string {
	if t.Any() {
		return ""
	}
	for _, o := range []struct{ name, text string }{
		{"otlp-headers", t.OTLPHeaders}, {"pyroscope-headers", t.PyroscopeHeaders}, {"parca-headers", t.ParcaHeaders},
		{"tls-ca", t.CA}, {"tls-cert", t.Cert}, {"tls-key", t.Key}, {"spool", t.Spool}, {"relabel", t.Relabel},
	} {
		if o.text != "" {
			return o.name
		}
	}
	if t.SpoolMax != 0 {
		return "spool-max"
	}
	return ""
}

var toOptions = []Option{
	{"otlp", false, "URL", "send OpenTelemetry's profiles to `URL`, or to several with commas",
		text(func(t *To) *string { return &t.OTLP })},
	{"pyroscope", false, "URL", "send to Grafana Pyroscope at `URL`",
		text(func(t *To) *string { return &t.Pyroscope })},
	{"parca", false, "URL", "send to Parca at `URL`",
		text(func(t *To) *string { return &t.Parca })},
	{"otlp-headers", false, "FILE", "`file` of lines \"Name: value\" for otlp",
		text(func(t *To) *string { return &t.OTLPHeaders })},
	{"pyroscope-headers", false, "FILE", "`file` of headers for pyroscope: X-Scope-OrgID",
		text(func(t *To) *string { return &t.PyroscopeHeaders })},
	{"parca-headers", false, "FILE", "`file` of headers for parca",
		text(func(t *To) *string { return &t.ParcaHeaders })},
	{"tls-ca", false, "FILE", "`file` of certificates (PEM) to trust beside the system's",
		text(func(t *To) *string { return &t.CA })},
	{"tls-cert", false, "FILE", "`file` of goprof's own certificate (PEM)",
		text(func(t *To) *string { return &t.Cert })},
	{"tls-key", false, "FILE", "`file` of that certificate's key (PEM)",
		text(func(t *To) *string { return &t.Key })},
	{"spool", false, "DIR", "`folder` that keeps what is not delivered, also over a restart",
		text(func(t *To) *string { return &t.Spool })},
	{"spool-max", false, "MB", "`MB` that the spool may take for each destination (256; in memory 32)",
		into(func(c *Config) *int64 { return &c.To.SpoolMax }, readMegabytes)},
	{"relabel", false, "FILE", "`file` of rules in Prometheus' form for what is sent",
		text(func(t *To) *string { return &t.Relabel })},
}

func init() { Options = append(Options, toOptions...) }

func text(of func(*To) *string) func(*Config, string) error {
	return func(c *Config, s string) error {
		if strings.ContainsRune(s, 0) {
			return errors.New("it has a NUL in it")
		}
		*of(&c.To) = s
		return nil
	}
}

func readMegabytes(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n <= 0 {
		return 0, errors.New("it is a number of MB: 256")
	}
	return n, nil
}
