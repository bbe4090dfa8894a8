package cluster

import (
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

const nodeName = "here"

// node is a machine of a cluster. What it keeps is in dir, and all of it ends with the test.
type node struct {
	dir, bin string
	address  string // of the machine's first network card: pods and the control plane reach the node by it
	api      string
	cart     string // the pod with the JVM
}

func (n *node) file(name string) string { return filepath.Join(n.dir, name) }

func (n *node) write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(n.file(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return n.file(name)
}

func newNode(t *testing.T) *node {
	dir, err := os.MkdirTemp("", "goprof-node-")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{dir: dir, bin: filepath.Join(dir, "bin"), address: firstAddress(t)}
	n.api = net.JoinHostPort(n.address, freePort(t))
	keepKernelSettings(t)
	t.Cleanup(func() { n.remove(t) })
	n.build(t)
	n.secrets(t)
	n.controlPlane(t)
	n.containers(t)
	n.kubelet(t)
	return n
}

// build compiles the programs and makes the images.
func (n *node) build(t *testing.T) {
	if built := os.Getenv("GOPROF_CLUSTER"); built != "" { // a folder of an earlier build
		if err := os.CopyFS(n.bin, os.DirFS(built)); err != nil {
			t.Fatal(err)
		}
	} else {
		const version = "k8s.io/component-base/version.git"
		kubernetes := n.run(t, nil, "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
		number := strings.Split(strings.TrimPrefix(kubernetes, "v"), ".")
		ld := fmt.Sprintf("-s -w -X %[1]sVersion=%[2]s -X %[1]sMajor=%[3]s -X %[1]sMinor=%[4]s", version, kubernetes,
			number[0], number[1])
		const containerd = "github.com/containerd/containerd/v2/cmd/"
		n.run(t, nil, "go", "build", "-ldflags", ld, "-o", n.bin+"/", "./kube", "./pause",
			containerd+"containerd", containerd+"containerd-shim-runc-v2", containerd+"ctr")
	}
	for _, part := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet",
		"kubectl"} {
		if err := os.Symlink("kube", filepath.Join(n.bin, part)); err != nil {
			t.Fatal(err)
		}
	}
	n.run(t, nil, "env", "-C", "../..", "GOFLAGS=-trimpath", "scripts/build.sh", "-o", filepath.Join(n.bin, "goprof"))
}

// secrets makes the keys and the accounts: kubelet trusts a certificate, the control plane trusts tokens.
func (n *node) secrets(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	n.write(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	certificate := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "control-plane", Organization: []string{"system:masters"}},
		NotAfter:     time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.ParseIP(n.address)},
	}
	if der, err = x509.CreateCertificate(rand.Reader, certificate, certificate, key.Public(), key); err != nil {
		t.Fatal(err)
	}
	n.write(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))

	var tokens strings.Builder
	for file, account := range map[string]string{
		"admin":     `admin,1,"system:masters"`,
		"manager":   `system:kube-controller-manager,2,"system:masters"`,
		"scheduler": `system:kube-scheduler,3`,
		"kubelet":   `system:node:` + nodeName + `,4,"system:nodes"`,
		"reader":    `reader,5`,
	} {
		token := rand.Text()
		fmt.Fprintf(&tokens, "%s,%s\n", token, account)
		n.write(t, file+".conf", fmt.Sprintf(kubeconfig, n.api, n.file("cert.pem"), token))
	}
	n.write(t, "tokens.csv", tokens.String())
}

const kubeconfig = `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://%s", certificate-authority: %s}}]
users: [{name: u, user: {token: %s}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`

func (n *node) controlPlane(t *testing.T) {
	etcd, peer := "http://127.0.0.1:"+freePort(t), "http://127.0.0.1:"+freePort(t)
	n.start(t, "etcd", "--data-dir", n.file("etcd"), "--unsafe-no-fsync", "--listen-client-urls", etcd,
		"--advertise-client-urls", etcd, "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", "default="+peer)
	host, port, _ := net.SplitHostPort(n.api)
	n.start(t, "kube-apiserver", "--etcd-servers", etcd, "--bind-address", host, "--secure-port", port,
		"--advertise-address", host, "--tls-cert-file", n.file("cert.pem"), "--tls-private-key-file", n.file("key.pem"),
		"--token-auth-file", n.file("tokens.csv"), "--authorization-mode", "Node,RBAC",
		"--enable-admission-plugins", "NodeRestriction", "--allow-privileged", "--service-cluster-ip-range", "10.96.0.0/24",
		"--service-account-issuer", "https://kubernetes.default", "--service-account-key-file", n.file("cert.pem"),
		"--service-account-signing-key-file", n.file("key.pem"), "--kubelet-preferred-address-types", "InternalIP",
		"--kubelet-client-certificate", n.file("cert.pem"), "--kubelet-client-key", n.file("key.pem"))
	n.eventually(t, "the control plane is ready", func() error {
		ready := exec.Command(filepath.Join(n.bin, "kubectl"), append(n.admin(), "get", "--raw", "/readyz")...)
		out, err := ready.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	n.start(t, "kube-controller-manager", "--kubeconfig", n.file("manager.conf"), "--leader-elect=false",
		"--secure-port", freePort(t), "--service-account-private-key-file", n.file("key.pem"),
		"--root-ca-file", n.file("cert.pem"))
	n.start(t, "kube-scheduler", "--kubeconfig", n.file("scheduler.conf"), "--leader-elect=false",
		"--secure-port", freePort(t))
}

// containers starts containerd, and gives it the image that scripts/image makes and the one that keeps pods.
func (n *node) containers(t *testing.T) {
	if err := os.Mkdir(n.file("net.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	n.write(t, "net.d/pods.conflist", pods)
	n.start(t, "containerd", "--config", n.write(t, "containerd.toml", fmt.Sprintf(containerdConfig, n.dir)))
	ctr := []string{"--address", n.file("containerd.sock"), "--namespace", "k8s.io"}
	n.eventually(t, "containerd is ready", func() error {
		return exec.Command(filepath.Join(n.bin, "ctr"), append(slices.Clip(ctr), "version")...).Run()
	})
	for image, program := range map[string]string{"goprof:0.9.0": "goprof", "pause:1": "pause"} {
		layout, archive := n.file(program+".image"), n.file(program+".tar")
		n.run(t, nil, "env", "-C", "../..", "GOFLAGS=-trimpath", "go", "run", "./scripts/image", "-out", layout,
			"-version", "0.9.0", "amd64="+filepath.Join(n.bin, program))
		n.run(t, nil, "tar", "-C", layout, "-cf", archive, ".")
		n.run(t, nil, filepath.Join(n.bin, "ctr"), append(slices.Clip(ctr), "images", "import", "--local", "--snapshotter",
			"native", "--index-name", "docker.io/library/"+image, "--base-name", "docker.io/library/"+program, archive)...)
	}
}

// pods have a pair of interfaces each, and reach the node by it.
const pods = `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "ptp", "ipMasq": false,
	"ipam": {"type": "host-local", "subnet": "10.244.0.0/24", "routes": [{"dst": "0.0.0.0/0"}]}}]}`

const containerdConfig = `
version = 3
root = '%[1]s/containerd'
state = '%[1]s/state'
[grpc]
address = '%[1]s/containerd.sock'
[ttrpc]
address = '%[1]s/containerd.ttrpc'
[plugins.'io.containerd.cri.v1.images']
snapshotter = 'native'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = 'docker.io/library/pause:1'
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = ['/usr/lib/cni', '/opt/cni/bin']
conf_dir = '%[1]s/net.d'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
runtime_type = 'io.containerd.runc.v2'
`

func (n *node) kubelet(t *testing.T) {
	config := n.write(t, "kubelet.yaml", fmt.Sprintf(kubeletConfig, n.dir, n.address, freePort(t)))
	n.start(t, "kubelet", "--config", config, "--kubeconfig", n.file("kubelet.conf"), "--root-dir", n.file("kubelet"),
		"--hostname-override", nodeName, "--node-ip", n.address)
	n.eventually(t, "the node is ready", func() error {
		if state := n.kubectl(t, "get nodes --no-headers"); !strings.Contains(state, " Ready ") {
			return errors.New(state)
		}
		return nil
	})
}

// A disk that is nearly full is no reason to end pods here.
const kubeletConfig = `
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: %[1]s/cert.pem}}
authorization: {mode: AlwaysAllow}
tlsCertFile: %[1]s/cert.pem
tlsPrivateKeyFile: %[1]s/key.pem
containerRuntimeEndpoint: unix://%[1]s/containerd.sock
address: %[2]s
port: %[3]s
healthzPort: 0
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
enforceNodeAllocatable: []
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: "0%%", nodefs.available: "0%%", nodefs.inodesFree: "0%%", imagefs.available: "0%%"}
volumePluginDir: %[1]s/plugins
staticPodPath: ""
`

// start runs a part of the node until the test ends. What it says is in a file, of which a failed test shows the end.
func (n *node) start(t *testing.T, name string, args ...string) {
	t.Helper()
	log, err := os.Create(n.file(name + ".log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(n.bin, name), args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "PATH="+n.bin+":"+os.Getenv("PATH")+":/usr/sbin:/sbin")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s said:\n%s", name, text[max(0, len(text)-3000):])
		}
	})
}

// remove ends the containers, which outlive containerd, and takes away what is left of them.
func (n *node) remove(t *testing.T) {
	folders, _ := filepath.Glob("/sys/fs/cgroup/*/kubepods")
	folders = append(folders, "/sys/fs/cgroup/kubepods")
	for _, folder := range folders {
		endGroup(t, folder)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Error(err)
	}
	lines := strings.Split(string(mounts), "\n")
	slices.Reverse(lines) // the inner ones first
	for _, line := range lines {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], n.dir+"/") {
			syscall.Unmount(f[1], syscall.MNT_DETACH)
		}
	}
	for _, logs := range []string{"/var/log/containers/*_shop_*.log", "/var/log/containers/*_goprof_goprof-*.log",
		"/var/log/pods/shop_*", "/var/log/pods/goprof_*"} {
		files, _ := filepath.Glob(logs)
		for _, f := range files {
			os.RemoveAll(f)
		}
	}
	if err := os.RemoveAll(n.dir); err != nil {
		t.Error(err)
	}
}

// endGroup kills all processes in a control group and below, and removes it.
func endGroup(t *testing.T, folder string) {
	var groups []string
	filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			groups = append(groups, path)
		}
		return nil
	})
	slices.Reverse(groups)
	for _, g := range groups {
		for tries := 0; tries < 100; tries++ {
			pids, _ := os.ReadFile(filepath.Join(g, "cgroup.procs"))
			for _, f := range strings.Fields(string(pids)) {
				if pid, err := strconv.Atoi(f); err == nil {
					syscall.Kill(pid, syscall.SIGKILL)
				}
			}
			if err := syscall.Rmdir(g); err == nil || errors.Is(err, fs.ErrNotExist) {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// keepKernelSettings gives back what kubelet sets for the whole machine (pkg/kubelet/cm, setupKernelTunables).
func keepKernelSettings(t *testing.T) {
	for _, name := range []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
		"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"} {
		file := "/proc/sys/" + name
		if was, err := os.ReadFile(file); err == nil {
			t.Cleanup(func() { os.WriteFile(file, was, 0) })
		}
	}
}

func firstAddress(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() && ip.IP.To4() != nil {
			return ip.IP.String()
		}
	}
	t.Fatal("this machine has no network card with an address")
	return ""
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// decoded is the body of a request.
func decoded(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Content-Encoding") != "gzip" {
		return body, err
	}
	z, err := gzip.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
