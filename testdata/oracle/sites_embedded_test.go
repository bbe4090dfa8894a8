//go:build linux

package oracle

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"goprof/testdata/host"
	"goprof/testdata/jvmtest"
)

// TestOtherLaunchers: a JVM that no JDK's launcher has started is found by its name, listed with its version, and has
// whole stacks: one that a C program has made, and that of a jlink image.
func TestOtherLaunchers(t *testing.T) {
	t.Parallel()
	goprof := buildGoprof(t)
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for name, command := range map[string]func(*testing.T, jvmtest.JDK) (line []string, main string){
			"C": launchedByC, "jlink": launchedFromImage} {
			t.Run(name, func(t *testing.T) {
				line, main := command(t, jdk)
				pid := host.StartReady(t, exec.Command(line[0], line[1:]...))
				r := runIfSampled(t, goprof, "dump", main)
				for tries := 0; tries < 20 && strings.Contains(r.out, "truncated"); tries++ { // a thread that runs may be so
					r = runIfSampled(t, goprof, "dump", main)
				}
				if r.code != 0 || !strings.Contains(r.out, "pid "+strconv.Itoa(pid)) ||
					name == "C" && !strings.Contains(r.out, "pid "+strconv.Itoa(pid)+"  "+main) ||
					!strings.Contains(r.out, "truth.Shares.main ") || strings.Contains(r.out, "truncated") ||
					name == "C" && !strings.Contains(r.out, "jni_CallStaticVoidMethod ") {
					t.Errorf("dump: %+v", r)
				}
				if r := recordShares(t, goprof, "record", main, "-o", "-"); !strings.Contains(r.out, "truth.Shares.work") {
					t.Errorf("record: %+v", r)
				}
				wantListed(t, goprof, pid, main, jdk)
			})
		}
	})
}

func wantListed(t *testing.T, goprof string, pid int, main string, jdk jvmtest.JDK) {
	t.Helper()
	var listed struct {
		JVMs []struct {
			PID           int
			Main, Version string
		}
	}
	list := runIt(t, goprof, "list", "--json")
	if err := json.Unmarshal([]byte(list.out), &listed); err != nil {
		t.Fatal(err, list)
	}
	for _, j := range listed.JVMs {
		if j.PID == pid && filepath.Base(j.Main) == main && strings.HasPrefix(j.Version, strconv.Itoa(jdk.Version)) {
			return
		}
	}
	t.Errorf("%d %s is not listed, or not so: %s", pid, main, list.out)
}

// launchedByC is a program of C with a JVM. Its name is its own.
func launchedByC(t *testing.T, jdk jvmtest.JDK) (line []string, main string) {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skipf("needs gcc (scripts/tools.sh installs it): %v", err)
	}
	libjvm := jdk.Tool("../lib/server/libjvm.so")
	if _, err := os.Stat(libjvm); err != nil {
		t.Skipf("JDK 8 has it elsewhere: %v", err)
	}
	main = "shop-" + strconv.Itoa(os.Getpid())
	program := filepath.Join(t.TempDir(), main)
	include := jniHeaders(t)
	if out, err := exec.Command(gcc, "-O2", "-I"+include, "-I"+filepath.Join(include, "linux"), "-o", program,
		"../native/launcher.c", "-ldl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return []string{program, libjvm, "-Djava.class.path=" + jvmtest.Classes(t), "truth/Shares", "1", "1", "6"}, main
}

// launchedFromImage is an image of the modules that the program needs.
func launchedFromImage(t *testing.T, jdk jvmtest.JDK) (line []string, main string) {
	image := filepath.Join(t.TempDir(), "image")
	if out, err := exec.Command(jdk.Tool("jlink"), "--add-modules", "java.base,java.management", "--output",
		image).CombinedOutput(); err != nil {
		t.Skipf("this JDK makes no image: %v %s", err, out)
	}
	main = "image-" + strconv.Itoa(os.Getpid()) + ".jar"
	jar := jvmtest.PublicJar(t, main, "truth.Shares")
	jdk.Home = image
	return slices.Concat([]string{jdk.Tool("java"), "-jar", jar, "1", "1", "6"}), main
}
