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
	f, size, err := process.OpenInside(pid, namespaceFile)
	if err != nil {
		return ""
	}
	defer f.Close()
	if size > maxNamespace+1 {
		return ""
	}
	var b [maxNamespace + 2]byte
	n, _ := f.Read(b[:])
	return namespaceOf(string(b[:n]))
}

// maxNamespace is the longest name by Kubernetes' rules (RFC 1123: a label).
const maxNamespace = 63

// namespaceOf is the name in the file, empty if it breaks these rules.
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
