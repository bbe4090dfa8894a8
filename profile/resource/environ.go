package resource

import (
	"bytes"
	"net/url"
	"strings"
)

// These variables set a process's service for OpenTelemetry's SDKs.
const (
	envService    = "OTEL_SERVICE_NAME"
	envAttributes = "OTEL_RESOURCE_ATTRIBUTES"
)

// FromEnviron reads /proc/PID/environ. It only looks at two variables, because others may contain passwords. By the
// specification, the variable with the service's name has precedence over the attributes.
func FromEnviron(b []byte) (a Attributes) {
	for one := range bytes.SplitSeq(b, []byte{0}) {
		if text, ok := bytes.CutPrefix(one, []byte(envAttributes+"=")); ok {
			a.Add(parseList(string(text)))
		}
	}
	for one := range bytes.SplitSeq(b, []byte{0}) {
		if text, ok := bytes.CutPrefix(one, []byte(envService+"=")); ok && len(text) > 0 {
			a.Set(ServiceName, string(text))
			break // getenv returns the first of two
		}
	}
	return a
}

// parseList reads "key=value,key=value" with the escapes of URLs. By the specification, one bad pair makes the whole
// list void.
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
