package resource

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// Label is an attribute in the form of Prometheus and similar servers.
type Label struct{ Name, Value string }

// noLabels are attributes that do not become labels: they have a different value for each process, or another attribute
// has the same information. OTLP has them, and a relabel rule may make labels from them.
var noLabels = []string{
	ProcessPID, ProcessStarted, ProcessExecutable, ProcessOwner, RuntimeName, RuntimeVersion, RuntimeAbout,
	ServiceInstance,
	ContainerID, HostID, HostArch, OSType, "process.parent_pid", "telemetry.sdk.language", "telemetry.sdk.name",
	"telemetry.sdk.version", "telemetry.distro.name", "telemetry.distro.version", "host.ip", "host.mac", "os.description",
	"process.command", "process.command_line", "process.command_args", "process.executable.path",
}

// MaxLabels bounds the labels of a process. Pyroscope refuses series with more than 30.
const MaxLabels = 24

// maxLabel bounds a label's value: Pyroscope takes 2,048 bytes.
const maxLabel = 1024

// Labels returns the attributes that distinguish series, sorted by name. The service's name is always among them.
func (a Attributes) Labels() (list []Label) {
	list = append(list, Label{"service_name", Clean(cmp.Or(a.Get(ServiceName), "unknown_service:java"), maxLabel)})
	for i := range a {
		name := LabelName(a[i].Key)
		if len(list) == MaxLabels || slices.Contains(noLabels, a[i].Key) || strings.HasPrefix(name, "__") ||
			slices.ContainsFunc(list, func(l Label) bool { return l.Name == name }) {
			continue
		}
		if value := Clean(a[i].Value(), maxLabel); value != "" {
			list = append(list, Label{name, value})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list
}

// LabelName converts a key to a label's name: letters, digits and "_", with no digit first.
func LabelName(key string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, key)
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	return name
}
