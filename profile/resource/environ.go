package resource

import (
	"bytes"
	"net/url"
	"strings"
)

// The variables by which OpenTelemetry's SDKs are told whose a process is.
const (
	envService    = "OTEL_SERVICE_NAME"
	envAttributes = "OTEL_RESOURCE_ATTRIBUTES"
)

// FromEnviron reads /proc/PID/environ. It looks at two variables; all others, which may hold passwords, are passed
// over. The service's name goes before the attributes', as the specification says.
func FromEnviron(b []byte) (a Attributes) {
	for one := range bytes.SplitSeq(b, []byte{0}) {
		if text, ok := bytes.CutPrefix(one, []byte(envAttributes+"=")); ok {
			a.Add(parseList(string(text)))
		}
	}
	for one := range bytes.SplitSeq(b, []byte{0}) {
		if text, ok := bytes.CutPrefix(one, []byte(envService+"=")); ok && len(text) > 0 {
			a.Set(ServiceName, string(text))
			break // of two the first one is what getenv finds
		}
	}
	return a
}

// parseList reads "key=value,key=value" with the escapes of URLs. One bad pair makes all of it void, as the
// specification says.
func parseList(text string) (a Attributes) {
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if key = strings.TrimSpace(key); !ok || key == "" || err != nil {
			return nil
		}
		a.Set(key, value)
	}
	return a
}
