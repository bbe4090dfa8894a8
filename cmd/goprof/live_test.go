//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"goprof/cmd/goprof/exit"
	"goprof/testdata/jvmtest"
)

// TestLiveScripts are scripts with a JVM. JAVA_HOME is one JDK after the other. MAIN is a class that each script has
// for itself, so that it can find its JVMs by name. BRIEF is a time in seconds in which a JVM can start and run some
// of its program, MOMENT one in which goprof looks at each thread several times. A program that runs for LIFE does not
// end before the script does.
func TestLiveScripts(t *testing.T) {
	t.Parallel()
	brief, moment := 3, "0.5" // a starved machine takes more than a second to start a JVM
	emulated := os.Getenv("GOPROF_EMULATED") != ""
	if emulated {
		brief, moment = 15, "10"
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		classes := scripted(t, jdk)
		testscript.Run(t, testscript.Params{
			Dir:       "testdata/live",
			Cmds:      map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "recorded": recorded},
			Condition: func(name string) (bool, error) { return name == "emulated" && emulated, nil },
			Setup: func(env *testscript.Env) error {
				own := ownPart(jdk, strings.TrimPrefix(filepath.Base(env.WorkDir), "script-"))
				env.Setenv("JAVA_HOME", jdk.Home)
				env.Setenv("CLASSPATH", classes)
				env.Setenv("JDK", own)
				env.Setenv("MAIN", "Scripted"+own)
				env.Setenv("BRIEF", strconv.Itoa(brief))
				env.Setenv("MOMENT", moment)
				env.Setenv("LIFE", strconv.Itoa(200*brief))
				attached, err := os.ReadFile("testdata/live/attached.sh")
				if err != nil {
					return err
				}
				return os.WriteFile(filepath.Join(env.WorkDir, "attached.sh"), attached, 0o600)
			},
		})
	})
}

// ownPart is what the names of a script's programs have behind "Scripted". Other runs of this test may go on at the
// same time.
func ownPart(jdk jvmtest.JDK, script string) string {
	return fmt.Sprintf("%dr%d%s", jdk.Version, os.Getpid(), script)
}

// scripted compiles Scripted under the names of all scripts. It returns the folder of the classes.
func scripted(t *testing.T, jdk jvmtest.JDK) string {
	t.Helper()
	text, err := os.ReadFile("testdata/live/Scripted.java")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob("testdata/live/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	line := []string{"-d", dir}
	for _, script := range scripts {
		class := "Scripted" + ownPart(jdk, strings.TrimSuffix(filepath.Base(script), ".txtar"))
		line = append(line, filepath.Join(dir, class+".java"))
		put(t, line[len(line)-1], strings.ReplaceAll(string(text), "Scripted", class))
	}
	if out, err := exec.Command(jdk.Tool("javac"), line...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return dir
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

// guest starts a JVM that uses a quarter of a CPU. Tests that want some samples, and measure nothing, leave the rest to
// the tests beside them.
func guest(t *testing.T) *jvmtest.JVM {
	t.Helper()
	return jvmtest.Start(t, jvmtest.JDKs(t)[0], "truth.Guest", "-Xmx64m", "--", "5", "15")
}
