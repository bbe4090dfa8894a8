//go:build linux

package agent

import (
	"strings"

	"goprof/process"
)

// namespaceFile is where Kubernetes puts the namespace of a pod into its containers, with the account of the pod.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// podNamespace reads that file. The result is empty if there is none. Links that the container has put there are
// followed within its root.
func podNamespace(pid int) string {
	b, err := process.ReadInside(pid, namespaceFile, maxNamespace+1)
	if err != nil {
		return ""
	}
	return namespaceOf(string(b))
}

// maxNamespace is the longest name by Kubernetes' rules (RFC 1123: a label).
const maxNamespace = 63

// namespaceOf returns the name in the file, empty if it breaks these rules.
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
