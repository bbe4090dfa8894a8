//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"goprof/testdata/jvmtest"
)

// TestLiveScripts are scripts with a JVM: JAVA_HOME is a JDK, one after the other. BRIEF is long enough for a JVM to
// start and run some of its program, in seconds; what runs for LONG does not end by itself while a BRIEF recording goes
// on, and what runs for LIFE not before the script does.
func TestLiveScripts(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		testscript.Run(t, testscript.Params{
			Dir:  "testdata/live",
			Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
			Setup: func(env *testscript.Env) error {
				env.Setenv("JAVA_HOME", jdk.Home)
				own := fmt.Sprintf("%dr%d", jdk.Version, os.Getpid()) // other runs of this test may go on beside it
				env.Setenv("JDK", own)
				env.Setenv("MAIN", "Scripted"+own)
				brief := 3 // a starved machine takes more than a second to start a JVM
				if os.Getenv("GOPROF_EMULATED") != "" {
					brief = 15
				}
				env.Setenv("BRIEF", strconv.Itoa(brief))
				env.Setenv("LONG", strconv.Itoa(2*brief))
				env.Setenv("LIFE", strconv.Itoa(200*brief))
				return nil
			},
		})
	})
}
