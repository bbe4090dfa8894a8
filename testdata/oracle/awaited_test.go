//go:build linux

package oracle

import (
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// TestAwaited: of threads that wait for a FutureTask or a CompletableFuture it is known which thread computes it, and
// never a wrong one is named.
func TestAwaited(t *testing.T) {
	t.Parallel()
	for name, flags := range map[string][]string{"interpreted": {"-Xint"}, "mixed": nil,
		"compiled": {"-Xcomp", "-XX:TieredStopAtLevel=1"}} {
		t.Run(name, func(t *testing.T) {
			jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
				jvm := jvmtest.Start(t, jdk, "truth.Awaited", flags...)
				s, err := session.Attach(jvm.PID)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				var missing []string
				for end := time.Now().Add(time.Minute); time.Now().Before(end); { // threads may still be on their way
					threads, err := s.Dump(session.DumpOptions{Locks: true})
					if err != nil {
						t.Fatal(err)
					}
					if missing = checkAwaited(t, threads); len(missing) == 0 || name == "compiled" && len(missing) == 1 {
						break
					}
					time.Sleep(100 * time.Millisecond)
				}
				if len(missing) > 0 && (name != "compiled" || len(missing) > 1) {
					t.Errorf("not known: %v", missing)
				}
			})
		})
	}
}

// checkAwaited returns the threads of which it is not known who computes what they wait for.
func checkAwaited(t *testing.T, threads []profile.ThreadDump) (missing []string) {
	t.Helper()
	has := map[string]bool{}
	for i := range threads {
		has[threads[i].Name] = true
	}
	asked := 0
	for i := range threads {
		th, want := &threads[i], ""
		if of, waits := strings.CutSuffix(th.Name, "-waits"); waits && has[of+"-works"] {
			want = of + "-works"
		} else if th.Name == "outer-works" {
			want = "inner-works"
		} else if !waits && !strings.HasSuffix(th.Name, "-works") {
			continue
		}
		asked++
		got := ""
		if w := th.WaitsFor; w != nil {
			got = w.Owner.Name
			if (w.Kind == profile.Task) != (got != "") {
				t.Errorf("%s: %+v", th.Name, w)
			}
		}
		if got == "" && want != "" {
			missing = append(missing, th.Name)
		} else if got != want {
			t.Errorf("%s waits for %q, not for %q", th.Name, got, want)
		}
	}
	if asked < 14 {
		missing = append(missing, "threads")
	}
	return missing
}
