//go:build linux

package main

import (
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"goprof/testdata/jvmtest"
)

// TestLiveScripts are scripts with a JVM: JAVA_HOME is a JDK, one after the other.
func TestLiveScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("starts JVMs")
	}
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		testscript.Run(t, testscript.Params{
			Dir:  "testdata/live",
			Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
			Setup: func(env *testscript.Env) error {
				env.Setenv("JAVA_HOME", jdk.Home)
				env.Setenv("JDK", strconv.Itoa(jdk.Version))
				env.Setenv("MAIN", "Scripted"+strconv.Itoa(jdk.Version))
				return nil
			},
		})
	})
}
