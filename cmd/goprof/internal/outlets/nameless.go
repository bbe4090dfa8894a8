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

// nameless takes out of batches and messages what a policy does not allow. A nil nameless takes nothing out.
type nameless struct {
	mu    sync.Mutex
	by    *redact.Redactor
	known *redact.Functions
}

// text takes the names out of a process's name, or out of what the agent says of a process.
func (n *nameless) text(of string) string {
	if n == nil {
		return of
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.by.Text(of)
}

// batch makes a copy of a batch without names. Others may read the given one at the same time.
func (n *nameless) batch(b *batch.Batch) *batch.Batch {
	if n == nil {
		return b
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	out := *b
	out.Resource, out.Meta = n.whose(b.Resource), n.by.Meta(b.Meta)
	if out.Event.Name != "" { // it may be named after a function of the program
		out.Event.Name = n.by.Text(b.Event.Name)
	}
	out.Samples = slices.Clone(b.Samples)
	for i := range out.Samples {
		s := &out.Samples[i]
		renamed := n.by.Sample(&profile.Sample{Thread: s.Thread, Stack: s.Stack}, n.known)
		s.Thread, s.Link = renamed.Thread, renamed.Link
		if renamed.Stack != nil { // the stack belongs to the Redactor, and is valid until the next sample
			stack := *renamed.Stack
			stack.Frames = slices.Clone(stack.Frames)
			s.Stack = &stack
		}
	}
	return &out
}

// openAttributes are the attributes that stay as they are: numbers, and names that the kernel or a container runtime
// has made up.
var openAttributes = []string{resource.ProcessPID, resource.ProcessStarted, resource.ContainerID, resource.PodUID,
	resource.HostArch, resource.OSType}

// whose removes names from attributes. An attribute that goprof does not know loses even its key.
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
