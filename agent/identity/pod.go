//go:build linux

package identity

import (
	"os"
	"regexp"
	"strings"

	"goprof/process"
	"goprof/profile/resource"
)

// firstProcess is the host's first process, if the agent sees all processes (hostPID). Its root is the host's root.
const firstProcess = 1

// logFolder holds a link for each container of a node: POD_NAMESPACE_CONTAINER-ID.log. kubelet makes the links for log
// collectors (Kubernetes: kubelet/kuberuntime, logSymlink).
const logFolder = "/var/log/containers"

// maxLinks limits how many links are read. A node has some hundred pods, and links of earlier pods.
const maxLinks = 20_000

// pod returns the attributes of a container, as kubelet's links in a folder of a process's root show them. It returns
// none if no link holds the whole id: kubelet cuts names of more than 255 bytes.
func pod(pid int, folder, container string) resource.Attributes {
	if container == "" {
		return nil
	}
	names, err := process.ListInside(pid, folder, maxLinks)
	if err != nil {
		return nil
	}
	for _, name := range names {
		if of, is := strings.CutSuffix(name, "-"+container+".log"); is {
			return podOfLink(of)
		}
	}
	return nil
}

// podOfLink reads POD_NAMESPACE_CONTAINER. No part may contain "_" (RFC 1123).
func podOfLink(name string) (a resource.Attributes) {
	parts := strings.Split(name, "_")
	if len(parts) != 3 {
		return nil
	}
	a.Set(resource.PodName, parts[0])
	a.Set(resource.PodNamespace, parts[1])
	a.Set(resource.PodContainer, parts[2])
	if deployment := deploymentOf(parts[0]); deployment != "" {
		a.Set(resource.Deployment, deployment)
		a.Set(resource.ServiceName, deployment) // OpenTelemetry's rule for a service without a name of its own
	}
	return a
}

// deploymentPod matches the name of a pod that a ReplicaSet of a Deployment has made. The name has two random endings,
// of letters and digits that cannot form a word (Kubernetes: apimachinery/pkg/util/rand, SafeEncodeString and String).
// Pods of a CronJob have a number in place of the first.
var deploymentPod = regexp.MustCompile(`^(.+)-([bcdfghjklmnpqrstvwxz2456789]{6,10})-[bcdfghjklmnpqrstvwxz2456789]{5}$`)

// deploymentOf returns the Deployment of a pod by the pod's name, or "" if the pod may belong to something else.
func deploymentOf(pod string) string {
	m := deploymentPod.FindStringSubmatch(pod)
	if m == nil || strings.Trim(m[2], "2456789") == "" {
		return ""
	}
	return m[1]
}

// maxHostName is the longest name of a host (HOST_NAME_MAX).
const maxHostName = 64

// nodeName returns the host's name if goprof runs in a container, where the kernel reports the container's name.
// Elsewhere it returns "".
func nodeName() string {
	own, err := os.Readlink("/proc/self/ns/uts")
	if err != nil {
		return ""
	}
	hosts, err := os.Readlink("/proc/1/ns/uts")
	if err != nil || own == hosts {
		return ""
	}
	b, err := process.ReadInside(firstProcess, "/etc/hostname", maxHostName+1)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
