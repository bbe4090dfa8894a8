// Package kubernetes holds what runs goprof in a cluster. These tests need no cluster: a program stands in for kubectl.
package kubernetes

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// kubectl stands in for the real one. It notes how it is called, and answers as a cluster with one pod does.
const kubectl = `#!/bin/sh
echo "$*" >>"$LOG"
case "$*" in
    *"auth can-i -q $DENY"*) [ -z "$DENY" ] || exit 1 ;;
    *spec.containers*) printf app ;;
    *running.startedAt*) [ -n "$BROKEN" ] || printf now ;;
    *terminated.reason*) printf %s "$BROKEN" ;;
    *" exec "* | exec*) printf 'a;b 1\n'; echo 'goprof: one sample' >&2; exit 10 ;;
esac
`

// plugin runs kubectl-goprof.
func plugin(t *testing.T, deny, broken string, args ...string) (code int, stdout, stderr, calls string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "kubectl"), []byte(kubectl), 0o755); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(folder, "log")
	cmd := exec.Command("./kubectl-goprof", args...)
	cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "LOG="+log, "DENY="+deny, "BROKEN="+broken,
		"GOPROF_IMAGE=registry/goprof:1")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(log)
	return cmd.ProcessState.ExitCode(), out.String(), said.String(), string(b)
}

// TestPlugin: one ephemeral container is made, goprof runs in it, and its output and exit code are the plugin's.
func TestPlugin(t *testing.T) {
	code, out, said, calls := plugin(t, "", "", "record", "cart-0", "-d", "30s", "-n", "shop", "--format", "jfr")
	if code != 10 || out != "a;b 1\n" || said != "goprof: one sample\n" {
		t.Errorf("%d %q %q", code, out, said)
	}
	for _, want := range []string{
		"-n shop auth can-i -q patch pods --subresource=ephemeralcontainers\n",
		"-n shop debug cart-0 -q --image=registry/goprof:1 --target=app --profile=sysadmin -c goprof-",
		" -- /goprof wait 15m\n",
		" -- /goprof record --pid 1 -d 30s --format jfr -o -\n",
	} {
		if !strings.Contains(calls, want) {
			t.Errorf("%q is not among the calls:\n%s", want, calls)
		}
	}
}

func TestPluginNamesTheJVM(t *testing.T) {
	for _, c := range []struct{ want, args string }{
		{"/goprof dump --pid 7\n", "dump p --pid 7"},
		{"/goprof triage --pid 1 --target=x\n", "triage p --target=x"},
		{"/goprof list\n", "list p"},
		{"--target=jvm ", "snap p -c jvm"},
		{"--context prod debug p", "snap p --context=prod"},
	} {
		if _, _, said, calls := plugin(t, "", "", strings.Fields(c.args)...); !strings.Contains(calls, c.want) {
			t.Errorf("%s: %q is not among the calls:\n%s%s", c.args, c.want, calls, said)
		}
	}
}

// TestPluginFails: what is missing is named, and nothing is made before that is known.
func TestPluginFails(t *testing.T) {
	for name, c := range map[string]struct {
		deny, broken, args, want string
		made                     bool
	}{
		"right": {deny: "patch pods", args: "dump p -n shop",
			want: "you may not: patch pods --subresource=ephemeralcontainers (namespace shop)"},
		"container": {broken: "ErrImagePull", args: "dump p", want: "does not run: ErrImagePull", made: true},
		"value":     {args: "dump p -n", want: "-n needs a value"},
		"name":      {args: "dump p -n $(id)", want: "is no name"},
		"command":   {args: "agent p", want: "kubectl goprof COMMAND POD"},
		"pod":       {args: "dump --pid", want: "kubectl goprof COMMAND POD"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, said, calls := plugin(t, c.deny, c.broken, strings.Fields(c.args)...)
			made := strings.Contains("\n"+calls, "\ndebug ") || strings.Contains(calls, " debug ")
			if code == 0 || out != "" || !strings.Contains(said, c.want) || made != c.made {
				t.Errorf("%d %q %q\n%s", code, out, said, calls)
			}
		})
	}
}
