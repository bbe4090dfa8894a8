// Package cluster runs goprof in a real Kubernetes: a node of etcd, the control plane, kubelet and containerd, which
// are built from their Go modules. `make test-cluster` runs it as root, in namespaces of its own for processes and
// mounts. The build takes some ten minutes, the test one. The package is a module of its own, so that goprof's go.mod
// has none of these modules.
package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"goprof/testdata/jvmtest"
	"goprof/testdata/shipped"
)

// TestCluster: the base of kustomize makes agents that name what they sample as Kubernetes does, a changed ConfigMap
// reaches them, and the plugin of kubectl records the JVM of a pod.
func TestCluster(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("a node needs root: sudo make test-cluster")
	}
	n := newNode(t)
	n.startJVM(t)
	t.Run("agent", n.agent)
	t.Run("plugin", n.plugin)
}

// startJVM runs a program of two Java threads in a pod of the Deployment cart.
func (n *node) startJVM(t *testing.T) {
	all := jvmtest.JDKs(t)
	jdk := all[len(all)-1]
	jar := jvmtest.PublicJar(t, "petclinic.jar", "truth.Shares")
	n.kubectl(t, "create namespace shop")
	n.apply(t, fmt.Sprintf(deployment, jdk.Tool("java"), filepath.Dir(jar), jdk.Home))
	n.kubectl(t, "-n shop rollout status deployment/cart --timeout=120s")
	n.cart = n.kubectl(t, "-n shop get pod -l app=cart -o jsonpath={.items[0].metadata.name}")
	n.eventually(t, "the JVM runs", func() error {
		if log := n.kubectl(t, "-n shop logs "+n.cart); !strings.Contains(log, "READY") {
			return fmt.Errorf("it says %q", log)
		}
		return nil
	})
}

// deployment mounts this machine's programs in place of an image with a JDK.
const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: cart, namespace: shop}
spec:
  selector: {matchLabels: {app: cart}}
  template:
    metadata: {labels: {app: cart}}
    spec:
      automountServiceAccountToken: false
      containers:
        - name: app
          image: pause:1
          imagePullPolicy: Never
          stdin: true # the program ends with its input
          command: [%[1]s, -jar, /jar/petclinic.jar, "2", "2", "6"]
          resources: {limits: {cpu: 500m, memory: 512Mi}}
          securityContext:
            {runAsUser: 1000, allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
          volumeMounts:
            - {name: usr, mountPath: /usr, readOnly: true}
            - {name: lib, mountPath: /lib, readOnly: true}
            - {name: lib64, mountPath: /lib64, readOnly: true}
            - {name: etc, mountPath: /etc, readOnly: true}
            - {name: jar, mountPath: /jar, readOnly: true}
            - {name: tmp, mountPath: /tmp}
      volumes:
        - {name: usr, hostPath: {path: /usr}}
        - {name: lib, hostPath: {path: /usr/lib}}
        - {name: lib64, hostPath: {path: /usr/lib64}}
        - {name: etc, hostPath: {path: /etc}}
        - {name: jar, hostPath: {path: %[2]s}}
        - {name: tmp, emptyDir: {}}
`

// agent applies scripts/kubernetes/base as docs/deploy.md says, and then changes its ConfigMap.
func (n *node) agent(t *testing.T) {
	c := collect(t, n.address)
	base := n.base(t, "http://"+c.address)
	n.kubectl(t, "create namespace goprof")
	n.kubectl(t, "label namespace goprof pod-security.kubernetes.io/enforce=privileged")
	n.kubectl(t, "apply -n goprof -k "+base)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(n.kubectl(t, "-n goprof logs daemonset/goprof-agent --tail=50"))
		}
		n.kubectl(t, "delete -n goprof --timeout=60s -k "+base)
	})
	n.kubectl(t, "-n goprof rollout status daemonset/goprof-agent --timeout=120s") // its probes succeed
	want := map[string]string{
		"k8s.namespace.name": "shop", "k8s.pod.name": n.cart, "k8s.container.name": "app",
		"k8s.deployment.name": "cart", "k8s.node.name": nodeName, "host.name": nodeName, "service.name": "cart",
	}
	n.eventually(t, "a batch of the JVM with the names that Kubernetes gives it", func() error { return c.has(want) })
	n.kubectlArgs(t, "-n", "goprof", "patch", "configmap", "goprof-agent", "-p",
		fmt.Sprintf(`{"data": {"agent.yaml": "listen: 0.0.0.0:9464\notlp: http://%s\nspool: /spool\nrate: 7\n"}}`, c.address))
	n.eventually(t, "the agent reads the changed ConfigMap", func() error {
		log := n.kubectl(t, "-n goprof logs daemonset/goprof-agent")
		if !strings.Contains(log, "the configuration was read again") {
			return errors.New(log)
		}
		return nil
	})
	restarts := n.kubectl(t, "-n goprof get pods -o jsonpath={.items[*].status.containerStatuses[*].restartCount}")
	if restarts != "0" {
		t.Errorf("the agent was restarted: %s", restarts)
	}
}

// base is a copy of scripts/kubernetes/base with another server.
func (n *node) base(t *testing.T, server string) string {
	t.Helper()
	dir := n.file("base")
	if err := os.CopyFS(dir, os.DirFS("../../scripts/kubernetes/base")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "agent.yaml")
	text, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(text, []byte("http://collector:4318")) {
		t.Fatalf("%s names no server: %v", file, err)
	}
	text = bytes.Replace(text, []byte("http://collector:4318"), []byte(server), 1)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// plugin runs kubectl-goprof with the real kubectl.
func (n *node) plugin(t *testing.T) {
	run := func(user string, args ...string) (stdout, stderr string, err error) {
		cmd := exec.Command("../../scripts/kubernetes/kubectl-goprof", args...)
		cmd.Env = append(os.Environ(), "PATH="+n.bin+":"+os.Getenv("PATH"), "KUBECONFIG="+n.file(user+".conf"),
			"GOPROF_IMAGE=goprof:0.9.0")
		var out, said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &said
		err = cmd.Run()
		return out.String(), said.String(), err
	}
	record, said, err := run("admin", "record", n.cart, "-n", "shop", "-d", "5s")
	if err != nil || !regexp.MustCompile(`(?m)^.*truth\.Shares\.\w+.* \d+$`).MatchString(record) {
		t.Errorf("record: %v\n%s\n%s", err, said, record)
	}
	snap, said, err := run("admin", "snap", n.cart, "-n", "shop", "-d", "2s")
	if err != nil || !strings.HasPrefix(snap, "PK") { // a zip file
		t.Errorf("snap: %v\n%s", err, said)
	}
	dump, said, err := run("admin", "dump", n.cart, "-n", "shop")
	if err != nil || !strings.Contains(dump, "truth.Shares.main") {
		t.Errorf("dump: %v\n%s", err, said)
	}
	n.kubectl(t, "-n shop create role reader --verb=get,list --resource=pods")
	n.kubectl(t, "-n shop create rolebinding reader --role=reader --user=reader")
	if _, said, err = run("reader", "dump", n.cart, "-n", "shop"); err == nil ||
		!strings.Contains(said, "ephemeralcontainers") {
		t.Errorf("without the right to make ephemeral containers: %v\n%s", err, said)
	}
	n.kubectl(t, "label namespace shop pod-security.kubernetes.io/enforce=baseline")
	if _, said, err = run("admin", "dump", n.cart, "-n", "shop"); err == nil ||
		!strings.Contains(said, "violates PodSecurity") {
		t.Errorf("in a namespace that forbids privileges: %v\n%s", err, said)
	}
}

// collector receives OTLP over HTTP, and keeps the attributes of the resources.
type collector struct {
	address   string
	mu        sync.Mutex
	resources []map[string]string
}

func collect(t *testing.T, address string) *collector {
	l, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{address: l.Addr().String()}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { c.take(t, r) })}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return c
}

func (c *collector) take(t *testing.T, r *http.Request) {
	body, err := decoded(r)
	if err != nil {
		t.Errorf("%s: %v", r.URL, err)
		return
	}
	m := shipped.ParseOTLP(t, body)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range m.ResourceProfiles {
		attributes := make(map[string]string)
		for _, a := range p.Resource.Attributes {
			attributes[a.Key] = a.Value.GetStringValue()
		}
		c.resources = append(c.resources, attributes)
	}
}

// has is nil if a batch has all these attributes.
func (c *collector) has(want map[string]string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, have := range c.resources {
		lacks := false
		for k, v := range want {
			lacks = lacks || have[k] != v
		}
		if !lacks {
			return nil
		}
	}
	return fmt.Errorf("%d batches: %v", len(c.resources), c.resources[max(0, len(c.resources)-3):])
}

func (n *node) eventually(t *testing.T, what string, holds func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
		if err = holds(); err == nil {
			return
		}
	}
	t.Fatalf("%s: %v", what, err)
}

// kubectl is what the command prints; it must succeed.
func (n *node) kubectl(t *testing.T, line string) string {
	t.Helper()
	return n.kubectlArgs(t, strings.Fields(line)...)
}

func (n *node) kubectlArgs(t *testing.T, args ...string) string {
	t.Helper()
	return n.run(t, nil, filepath.Join(n.bin, "kubectl"), append(n.admin(), args...)...)
}

func (n *node) admin() []string { return []string{"--kubeconfig", n.file("admin.conf")} }

func (n *node) apply(t *testing.T, manifest string) {
	t.Helper()
	n.run(t, strings.NewReader(manifest), filepath.Join(n.bin, "kubectl"), append(n.admin(), "apply", "-f", "-")...)
}

func (n *node) run(t *testing.T, in io.Reader, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = in
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, said.String())
	}
	return strings.TrimSpace(string(out))
}
