//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"goprof/cmd/goprof/exit"
	"goprof/testdata/jvmtest"
)

// TestLiveScripts are scripts with a JVM. JAVA_HOME is one JDK after the other. BRIEF is a time in seconds in which
// a JVM can start and run some of its program. A program that runs for LONG does not end by itself during a BRIEF
// recording. A program that runs for LIFE does not end before the script does.
func TestLiveScripts(t *testing.T) {
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		testscript.Run(t, testscript.Params{
			Dir:  "testdata/live",
			Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "recorded": recorded},
			Setup: func(env *testscript.Env) error {
				env.Setenv("JAVA_HOME", jdk.Home)
				// other runs of this test may go on at the same time
				own := fmt.Sprintf("%dr%d", jdk.Version, os.Getpid())
				env.Setenv("JDK", own)
				env.Setenv("MAIN", "Scripted"+own)
				brief := 5 // a starved machine takes more than a second to start a JVM, and may stand still for three
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

// recorded is exec for recordings. It tries again until there is a sample.
func recorded(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: recorded program args...")
	}
	none := fmt.Sprintf("exit status %d", exit.NoSamples)
	err := ts.Exec(args[0], args[1:]...)
	for tries := 1; err != nil && err.Error() == none && tries < recordTries; tries++ {
		err = ts.Exec(args[0], args[1:]...)
	}
	if err != nil {
		ts.Fatalf("%v", err)
	}
}
