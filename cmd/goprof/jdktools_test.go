//go:build linux

package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"goprof/testdata/jvmtest"
)

// TestLiveInJDKTools: the jfr command of each JDK reads what was recorded live, to the sample.
func TestLiveInJDKTools(t *testing.T) {
	t.Parallel()
	all := jvmtest.JDKs(t)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Shares", "--", "1", "2")
		name := filepath.Join(t.TempDir(), "live.jfr")
		account := record(t, jvm.PID, name, "-d", "2s", "-r", "500")
		jvm.Quit()
		for _, by := range all {
			tool := func(args ...string) string {
				out, err := exec.Command(by.Tool("jfr"), append(args, name)...).CombinedOutput()
				if err != nil {
					t.Fatalf("%v: jfr %s: %v\n%s", by, args, err, out)
				}
				return string(out)
			}
			if by.Version < 11 {
				continue // this JDK has no jfr command yet
			}
			tool("summary")
			printed := tool("print", "--json", "--events", "jdk.ExecutionSample,jdk.NativeMethodSample,goprof.Account")
			if n := int64(strings.Count(printed, `"type": "jdk.`)); n != account.Samples {
				t.Errorf("jfr of %v has %d samples of %d", by, n, account.Samples)
			}
			if !strings.Contains(printed, `"type": "goprof.Account"`) {
				t.Errorf("jfr of %v shows no account", by)
			}
			if by.Version >= 21 {
				if table := tool("view", "hot-methods"); !strings.Contains(table, "Shares") {
					t.Errorf("jfr view of %v:\n%s", by, table)
				}
			}
		}
		t.Logf("%v: %d samples, read by the jfr of %v", jdk, account.Samples, all)
	})
}
