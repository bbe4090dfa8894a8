//go:build linux

package outlets

import (
	"slices"
	"sync"

	"goprof/agent"
	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/redact"
	"goprof/profile/resource"
)

// nameless removes names that a policy does not allow from batches and messages. A nil nameless removes nothing.
type nameless struct {
	mu    sync.Mutex
	by    *redact.Redactor
	known *redact.Functions
}

// text removes names from the name of a process, or from a message about it.
func (n *nameless) text(of string) string {
	if n == nil {
		return of
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.by.Text(of)
}

// batch returns a copy of a batch without names. Other code may read the original at the same time.
func (n *nameless) batch(b *batch.Batch) *batch.Batch {
	if n == nil {
		return b
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	out := *b
	out.Resource, out.Meta = n.whose(b.Resource), n.by.Meta(b.Meta)
	if out.Event.Name != "" { // the event may be named after a function of the program
		out.Event.Name = n.by.Text(b.Event.Name)
	}
	out.Samples = slices.Clone(b.Samples)
	for i := range out.Samples {
		s := &out.Samples[i]
		renamed := n.by.Sample(&profile.Sample{Thread: s.Thread, Stack: s.Stack}, n.known)
		s.Thread, s.Link = renamed.Thread, renamed.Link
		if renamed.Stack != nil { // the Redactor reuses its stack for the next sample
			stack := *renamed.Stack
			stack.Frames = slices.Clone(stack.Frames)
			s.Stack = &stack
		}
	}
	return &out
}

// openAttributes are kept unchanged: numbers, and names that come from the kernel or a container runtime.
var openAttributes = []string{resource.ProcessPID, resource.ProcessStarted, resource.ContainerID, resource.PodUID,
	resource.HostArch, resource.OSType}

// whose removes names from attributes. Even the key of an unknown attribute is removed.
func (n *nameless) whose(a resource.Attributes) resource.Attributes {
	if n == nil {
		return a
	}
	var out resource.Attributes
	for _, one := range a {
		if slices.Contains(openAttributes, one.Key) || one.Key == resource.RuntimeName && agent.IsRuntime(one.Text) {
			if one.IsInt {
				out.SetInt(one.Key, one.Number)
			} else {
				out.Set(one.Key, one.Text)
			}
			continue
		}
		switch one.Key {
		case resource.ServiceName:
			out.Set(one.Key, n.by.Program(one.Text))
		case resource.RuntimeName, resource.RuntimeVersion, resource.RuntimeAbout:
			out.Set(one.Key, n.by.Version(one.Text))
		case resource.HostName, resource.HostID, resource.ServiceInstance:
			out.Set(one.Key, n.by.Host(one.Value()))
		case resource.ServiceNamespace, resource.ServiceVersion, resource.ProcessExecutable, resource.ProcessOwner,
			resource.PodName, resource.PodNamespace, resource.PodContainer, resource.Deployment, resource.NodeName:
			out.Set(one.Key, n.by.Text(one.Value()))
		}
	}
	return out
}
