// Package kubernetes renders the chart and the kustomization with their own libraries, and reads the results with the
// types of Kubernetes' API. It is a module of its own: these libraries are large.
package kubernetes

import (
	"bytes"
	"io"
	"os"
	"sort"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/rulefmt"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const folder = "../../scripts/kubernetes/"

// render is what helm template gives.
func render(t *testing.T, values map[string]any) string {
	t.Helper()
	chart, err := loader.Load(folder + "chart")
	if err != nil {
		t.Fatal(err)
	}
	release := chartutil.ReleaseOptions{Name: "goprof-agent", Namespace: "goprof"}
	all, err := chartutil.ToRenderValues(chart, values, release, chartutil.DefaultCapabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(chart, all)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for name, text := range files {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(text) != "" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	var out strings.Builder
	for _, name := range names {
		out.WriteString("---\n" + strings.TrimSpace(files[name]) + "\n")
	}
	return out.String()
}

// objects reads manifests as strictly as a server does that validates: an unknown field is an error.
func objects(t *testing.T, text string) (all []runtime.Object) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{core.AddToScheme, apps.AddToScheme, networking.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewDocumentDecoder(io.NopCloser(strings.NewReader(text)))
	buffer := make([]byte, 1<<20)
	for {
		n, err := documents.Read(buffer)
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(buffer[:n], []byte("monitoring.coreos.com")) {
			continue // the operator's own kinds: the rules are read below
		}
		object, _, err := decoder.Decode(buffer[:n], nil, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, buffer[:n])
		}
		all = append(all, object)
	}
}

// TestBase: the manifest for kustomize is what the chart gives without values. GOPROF_RECORD=1 writes it.
func TestBase(t *testing.T) {
	const head = "# Made from scripts/kubernetes/chart: GOPROF_RECORD=1 make test-kubernetes\n"
	text := head + render(t, nil)
	if os.Getenv("GOPROF_RECORD") != "" {
		if err := os.WriteFile(folder+"base/agent.yaml", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(folder + "base/agent.yaml")
	if err != nil || string(kept) != text {
		t.Errorf("base/agent.yaml is not what the chart gives (%v)", err)
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder+"base")
	if err != nil {
		t.Fatal(err)
	}
	b, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, o := range objects(t, string(b)) {
		kinds[o.GetObjectKind().GroupVersionKind().Kind]++
		if d, is := o.(*apps.DaemonSet); is && (d.Namespace != "goprof" || !d.Spec.Template.Spec.HostPID) {
			t.Errorf("%+v", d)
		}
	}
	if len(kinds) != 4 || kinds["DaemonSet"] != 1 || kinds["Namespace"] != 1 {
		t.Errorf("%v", kinds)
	}
}

// TestValues: each value of the chart does what it says.
func TestValues(t *testing.T) {
	text := render(t, map[string]any{
		"image": map[string]any{"repository": "r.example/goprof", "tag": "1.2.3",
			"pullSecrets": []any{map[string]any{"name": "pull"}}},
		"config":            map[string]any{"pyroscope": "https://p", "max-cpu": "2%", "match": []any{"shop"}},
		"attributes":        []any{"deployment.environment.name=prod"},
		"probes":            true,
		"priorityClassName": "system-node-critical",
		"nodeSelector":      map[string]any{"pool": "java"},
		"podLabels":         map[string]any{"team": "sre"},
		"podAnnotations":    map[string]any{"note": "x"},
		"secretName":        "tls",
		"networkPolicy": map[string]any{"enabled": true,
			"metricsFrom": []any{map[string]any{"podSelector": map[string]any{}}},
			"egress":      []any{map[string]any{"ports": []any{map[string]any{"port": 443}}}}},
		"podMonitor": map[string]any{"enabled": true},
		"alerts":     map[string]any{"enabled": true},
	})
	var seen int
	for _, o := range objects(t, text) {
		switch o := o.(type) {
		case *apps.DaemonSet:
			seen++
			pod := &o.Spec.Template.Spec
			c := &pod.Containers[0]
			rights := c.SecurityContext.Capabilities.Add
			if c.Image != "r.example/goprof:1.2.3" || pod.PriorityClassName != "system-node-critical" ||
				pod.NodeSelector["pool"] != "java" || o.Spec.Template.Labels["team"] != "sre" ||
				rights[len(rights)-1] != "SYS_ADMIN" || len(c.VolumeMounts) != 3 || len(pod.ImagePullSecrets) != 1 ||
				c.Args[len(c.Args)-1] != "--attribute=deployment.environment.name=prod" {
				t.Errorf("%+v", o.Spec)
			}
		case *core.ConfigMap:
			seen++
			if got := o.Data["agent.yaml"]; !strings.Contains(got, "match:\n- shop\n") || !strings.Contains(got, "max-cpu: 2%") {
				t.Errorf("%q", got)
			}
		case *networking.NetworkPolicy:
			seen++
			if len(o.Spec.Egress) != 2 || len(o.Spec.Ingress) != 1 || len(o.Spec.Ingress[0].From) != 1 {
				t.Errorf("%+v", o.Spec)
			}
		}
	}
	if seen != 3 || !strings.Contains(text, "kind: PrometheusRule") || !strings.Contains(text, "kind: PodMonitor") {
		t.Errorf("%d kinds in\n%s", seen, text)
	}
}

// TestLint: helm lint finds nothing.
func TestLint(t *testing.T) {
	for _, m := range lint.All(folder+"chart", nil, "goprof", false).Messages {
		if m.Severity > 1 { // 1 is advice: an icon
			t.Error(m)
		}
	}
}

// TestAlerts: Prometheus' own parser reads the rules and their expressions.
func TestAlerts(t *testing.T) {
	groups, errs := rulefmt.ParseFile(folder+"chart/alerts.yaml", false)
	if len(errs) > 0 || len(groups.Groups) != 1 || len(groups.Groups[0].Rules) < 5 {
		t.Error(errs, groups)
	}
}
