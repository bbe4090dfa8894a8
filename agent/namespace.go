//go:build linux

package agent

import (
	"strings"

	"goprof/process"
)

// namespaceFile holds the namespace of a pod. Kubernetes puts it into the pod's containers, beside the service account.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// podNamespace reads that file. It returns "" if there is none. Links in the container are resolved within the
// container's root.
func podNamespace(pid int) string {
	b, err := process.ReadInside(pid, namespaceFile, maxNamespace+1)
	if err != nil {
		return ""
	}
	return namespaceOf(string(b))
}

// maxNamespace is the longest name by Kubernetes' rules (RFC 1123: a label).
const maxNamespace = 63

// namespaceOf returns the name in the file, or "" if the name breaks these rules.
func namespaceOf(text string) string {
	name := strings.TrimSpace(text)
	if len(name) > maxNamespace {
		return ""
	}
	for _, c := range name {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-') {
			return ""
		}
	}
	return name
}
