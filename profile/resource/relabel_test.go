package resource

import (
	"fmt"
	"strings"
	"testing"
)

func process() (a Attributes) {
	a.Set(ServiceName, "shop-cart")
	a.Set(HostName, "Node-7")
	a.Set(PodUID, "uid")
	a.SetInt(ProcessPID, 4711)
	return a
}

// TestRelabel: each action has the same effect as in Prometheus.
func TestRelabel(t *testing.T) {
	for _, row := range [][2]string{
		{"- {}", "error"},
		{"- source_labels: [service_name]\n  regex: shop-(.*)\n  target_label: part\n  replacement: x-$1", "part=x-cart"},
		{"- source_labels: [service_name]\n  regex: shop\n  target_label: part\n  replacement: x", "part="},
		{"- source_labels: [service_name, host_name]\n  separator: '@'\n  target_label: both", "both=shop-cart@Node-7"},
		{"- source_labels: [host_name]\n  target_label: service_name", "service.name=Node-7"},
		{"- source_labels: [host_name]\n  action: lowercase\n  target_label: host_name", "host.name=node-7"},
		{"- source_labels: [host_name]\n  action: uppercase\n  target_label: h", "h=NODE-7"},
		{"- action: labeldrop\n  regex: k8s_.*", "k8s.pod.uid="},
		{"- action: labelkeep\n  regex: service_name", "host.name="},
		{"- action: labelmap\n  regex: k8s_(.+)\n  replacement: kube_$1", "kube_pod_uid=uid"},
		{"- source_labels: [process_pid]\n  action: hashmod\n  modulus: 1\n  target_label: m", "m=0"},
		{"- source_labels: [process_pid]\n  target_label: pid", "pid=4711"},
		{"- source_labels: [service_name]\n  action: keep\n  regex: shop-.*", "host.name=Node-7"},
		{"- source_labels: [service_name]\n  action: keep\n  regex: shop", "dropped"},
		{"- source_labels: [service_name]\n  action: drop\n  regex: \"shop-.*\"", "dropped"},
		{"- source_labels: [service_name]\n  action: dropequal\n  target_label: service_name", "dropped"},
		{"- source_labels: [service_name]\n  action: keepequal\n  target_label: host_name", "dropped"},
		{"# only\nrelabel_configs:\n- target_label: __tmp\n  replacement: x" +
			"\n- source_labels: [__tmp]\n  target_label: t", "t=x"},
		{"- target_label: __tmp\n  replacement: x", "__tmp="},
		{"- source_labels: [host_name]\n  action: explode", "error"},
		{"- regex: (", "error"},
		{"- source_labels: host_name", "error"},
		{"regex: x", "error"},
		{"- regex: |\n    x", "error"},
		{"- action: hashmod\n  target_label: x\n  source_labels: [a]", "error"},
		{"- target_label: 'a b'\n  replacement: x", "a b="},
		{"- source_labels: [host_name]\n  regex: ''\n  target_label: h # c", "h="},
		{"- target_label: host_name\n  replacement: ''", "host.name="},
		{"- source_labels: [host_name]\n  target_label: h # c", "h=Node-7"},
	} {
		rule, want := row[0], row[1]
		rules, err := ReadRules(strings.NewReader(rule))
		if err != nil {
			if want != "error" {
				t.Errorf("%q: %v", rule, err)
			}
			continue
		}
		a, keep := rules.Apply(process())
		got := "dropped"
		if key, _, ok := strings.Cut(want, "="); ok && keep {
			got = key + "=" + a.Get(key)
		}
		if got != want {
			t.Errorf("%q gives %s, want %s: %+v", rule, got, want, a)
		}
	}
}

func TestLabels(t *testing.T) {
	got := fmt.Sprint(process().Labels())
	if got != "[{host_name Node-7} {k8s_pod_uid uid} {service_name shop-cart}]" {
		t.Error(got)
	}
	var many Attributes
	for i := range 100 {
		many.Set(fmt.Sprintf("k%d", i), strings.Repeat("v", 3000))
	}
	list := many.Labels()
	if len(list) != MaxLabels || len(list[0].Value) > maxLabel {
		t.Errorf("%d labels", len(list))
	}
}

func FuzzReadRules(f *testing.F) {
	f.Add("- source_labels: [a, 'b']\n  regex: (.*)\n  target_label: c")
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := ReadRules(strings.NewReader(text))
		if err == nil {
			rules.Apply(process())
		}
	})
}
