//go:build linux

package identity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goprof/profile/resource"
)

// TestPodOfLink: names as kubelet makes them, and others.
func TestPodOfLink(t *testing.T) {
	for name, want := range map[string]struct{ pod, namespace, container, deployment string }{
		"cart-6d4cf56db6-x7k2q_shop_jvm":            {"cart-6d4cf56db6-x7k2q", "shop", "jvm", "cart"},
		"pay-by-card-7f9c8b5d4-2v9xz_shop-prod_pay": {"pay-by-card-7f9c8b5d4-2v9xz", "shop-prod", "pay", "pay-by-card"},
		"kafka-0_data_kafka":                        {"kafka-0", "data", "kafka", ""},
		"node-exporter-x7k2q_ops_main":              {"node-exporter-x7k2q", "ops", "main", ""},
		"report-28456789-x7k2q_shop_jvm":            {"report-28456789-x7k2q", "shop", "jvm", ""}, // of a CronJob
		"report-29456782-x7k2q_shop_jvm":            {"report-29456782-x7k2q", "shop", "jvm", ""},
		"kube-apiserver-node-7.example.org_kube-system_kube-apiserver": {"kube-apiserver-node-7.example.org",
			"kube-system", "kube-apiserver", ""},
		"x_y": {}, "a_b_c_d": {}, "": {},
	} {
		a := podOfLink(name)
		if a.Get(resource.PodName) != want.pod || a.Get(resource.PodNamespace) != want.namespace ||
			a.Get(resource.PodContainer) != want.container || a.Get(resource.Deployment) != want.deployment ||
			a.Get(resource.ServiceName) != want.deployment {
			t.Errorf("%s: %v", name, a)
		}
	}
}

// TestPod: the link of a container is found among others, inside of a process's root.
func TestPod(t *testing.T) {
	folder, id := t.TempDir(), strings.Repeat("0a", 32)
	other := strings.Repeat("0b", 32)
	for _, name := range []string{"cart-0_shop_jvm-" + other + ".log", "cart-1_shop_jvm-" + id + ".log"} {
		if err := os.Symlink("/nowhere", filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	if a := pod(os.Getpid(), folder, id); a.Get(resource.PodName) != "cart-1" {
		t.Errorf("%v", a)
	}
	for _, other := range []string{"", strings.Repeat("0c", 32)} {
		if a := pod(os.Getpid(), folder, other); a != nil {
			t.Errorf("%q is of %v", other, a)
		}
	}
	if a := pod(os.Getpid(), folder+"/none", id); a != nil {
		t.Errorf("%v", a)
	}
}
