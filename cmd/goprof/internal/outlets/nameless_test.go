//go:build linux

package outlets

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/redact"
	"goprof/profile/resource"
)

// TestBatchWithoutNames: no word of a program is left anywhere in a batch. What backends need to put profiles in
// their place is left.
func TestBatchWithoutNames(t *testing.T) {
	by := redact.New(redact.Default(), make([]byte, redact.KeySize))
	n := &nameless{by: by, known: by.Functions()}
	var attributes resource.Attributes
	for _, key := range []string{resource.ServiceName, resource.ServiceNamespace, resource.ServiceVersion,
		resource.ServiceInstance, resource.ProcessExecutable, resource.ProcessOwner, resource.RuntimeAbout,
		resource.HostName, resource.HostID, "zebra.tenant", "k8s.deployment.name"} {
		attributes.Set(key, "com.zebra.Zebra")
	}
	attributes.Set(resource.ContainerID, strings.Repeat("0123abcd", 8))
	attributes.SetInt(resource.ProcessPID, 4711)
	g := batch.NewGatherer(batch.GatherOptions{})
	for i := range 3 {
		g.Add(&profile.Sample{Thread: profile.Thread{TID: 7, Name: "zebra-1", JavaName: "zebra-worker-1"},
			Stack: &profile.Stack{Virtual: profile.VirtualThread{Name: "zebra-v"}, Frames: []profile.Frame{
				{Func: &profile.Func{Name: "java.lang.String.hashCode"}},
				{Func: &profile.Func{Name: fmt.Sprintf("com.zebra.Zebra.zebra%c", 'a'+i), File: "Zebra.java"}}}}})
	}
	given := g.Take(attributes, profile.Meta{PID: 4711, MainClass: "com.zebra.Zebra", Host: "zebra"}, time.Now(),
		time.Now())
	before := textOf(given)
	b := n.batch(given)
	text := textOf(b)
	if strings.Contains(strings.ToLower(text), "zebra") {
		t.Error(text)
	}
	for _, stays := range []string{"java.lang.String.hashCode", "0123abcd", "4711", "worker"} {
		if !strings.Contains(text, stays) {
			t.Errorf("%q is gone: %s", stays, text)
		}
	}
	if len(b.Samples) != 3 || b.Samples[0].Stack.Frames[1].Func.Name == b.Samples[1].Stack.Frames[1].Func.Name {
		t.Errorf("stacks run into each other: %s", text)
	}
	if textOf(given) != before {
		t.Error("the batch that was given has changed")
	}
}

func textOf(b *batch.Batch) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%+v %+v\n", b.Resource, b.Meta)
	for i := range b.Samples {
		s := &b.Samples[i]
		fmt.Fprintf(&text, "%+v %+v", s.Thread, s.Stack.Virtual)
		for _, f := range s.Stack.Frames {
			fmt.Fprintf(&text, " %+v", *f.Func)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// TestKindsOfRuntimesStay: the kind of a runtime is goprof's own word. What a process says of its runtime is not.
func TestKindsOfRuntimesStay(t *testing.T) {
	n := &nameless{by: redact.New(redact.Default(), make([]byte, redact.KeySize))}
	for text, stays := range map[string]bool{"python": true, ".NET": true, "acmevm": false} {
		var a resource.Attributes
		a.Set(resource.RuntimeName, text)
		if got := n.whose(a).Get(resource.RuntimeName); (got == text) != stays {
			t.Errorf("%s becomes %s", text, got)
		}
	}
}
