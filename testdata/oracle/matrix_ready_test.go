//go:build linux

package oracle

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"goprof/testdata/jvmtest"
)

// withClassArchive makes an archive of the classes that a first run has loaded (JEP 350, 13 and later).
func withClassArchive(t *testing.T, jdk jvmtest.JDK, flags []string) ([]string, string) {
	jar, archive := classesJar(t), filepath.Join(t.TempDir(), "classes.jsa")
	if why := train(t, jdk, flags, "-XX:ArchiveClassesAtExit="+archive, jar, archive); why != "" {
		return nil, why
	}
	return []string{"-XX:SharedArchiveFile=" + archive, "-Xshare:on", "-cp", jar}, ""
}

// withAOTCache makes a cache of what a first run has loaded, linked and profiled (JEP 514, 25 and later).
// With AOTMode=on a JVM that cannot use it does not start.
func withAOTCache(t *testing.T, jdk jvmtest.JDK, flags []string) ([]string, string) {
	jar, cache := classesJar(t), filepath.Join(t.TempDir(), "classes.aot")
	if why := train(t, jdk, flags, "-XX:AOTCacheOutput="+cache, jar, cache); why != "" {
		return nil, why
	}
	return []string{"-XX:AOTCache=" + cache, "-XX:AOTMode=on", "-cp", jar}, ""
}

// train runs the program for a while with a flag that makes a file at the JVM's end.
func train(t *testing.T, jdk jvmtest.JDK, flags []string, flag, jar, makes string) (why string) {
	t.Helper()
	line := append(append([]string{}, flags...), flag)
	if why := refuses(jdk, line); why != "" {
		return why
	}
	os.Remove(makes) // the question made one
	t.Run("training", func(t *testing.T) {
		line = append(line, "-cp", jar, "--", filepath.Join(t.TempDir(), "shadow"))
		jvm := jvmtest.Start(t, jdk, "truth.Shadow", line...)
		for trees := 0; trees < 100; { // some of it is compiled by then
			trees, _ = strconv.Atoi(jvm.Command("trees")[0])
		}
		jvm.Quit()
	})
	if info, err := os.Stat(makes); err != nil || info.Size() == 0 {
		t.Fatalf("%s made nothing: %v", flag, err)
	}
	return ""
}

// classesJar puts the programs of testdata/java into a jar: archives of classes take none from directories.
func classesJar(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "truth.jar")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	jar := zip.NewWriter(f)
	if err := jar.AddFS(os.DirFS(jvmtest.Classes(t))); err != nil {
		t.Fatal(err)
	}
	if err := jar.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// withAgent loads an agent that has the JVM tell it of much (testdata/native/agent.c).
func withAgent(what string) func(*testing.T, jvmtest.JDK, []string) ([]string, string) {
	return func(t *testing.T, jdk jvmtest.JDK, flags []string) ([]string, string) {
		lib := buildNative(t, "agent.c", "libagent.so", withCFI...)
		return []string{"-agentpath:" + lib.path + "=" + what}, ""
	}
}

// withGraal uses the compiler that is written in Java: JDK 11 may hold it, for others GOPROF_GRAAL names directories
// of its jars, as scripts/graal.sh does: 21=/path:25=/path.
func withGraal(t *testing.T, jdk jvmtest.JDK, flags []string) ([]string, string) {
	use := []string{"-XX:+EnableJVMCI", "-XX:+UseJVMCICompiler"}
	out, err := exec.Command(jdk.Tool("java"), "--list-modules").Output()
	if err != nil || !strings.Contains(string(out), "jdk.internal.vm.ci@") &&
		!strings.Contains(string(out), "jdk.internal.vm.ci\n") {
		return nil, "it has no module jdk.internal.vm.ci"
	}
	for item := range strings.SplitSeq(os.Getenv("GOPROF_GRAAL"), ":") {
		version, dir, _ := strings.Cut(item, "=")
		if version != strconv.Itoa(jdk.Version) {
			continue
		}
		jars, err := filepath.Glob(filepath.Join(dir, "*.jar"))
		if err != nil || len(jars) == 0 {
			t.Fatalf("GOPROF_GRAAL: no jars in %s: %v", dir, err)
		}
		path := strings.Join(jars, ":")
		return append(use, "--module-path="+path, "--upgrade-module-path="+path), ""
	}
	// 17 has the module, and nothing in it
	if jdk.Version >= 17 || !strings.Contains(string(out), "jdk.internal.vm.compiler@") {
		return nil, "no Graal compiler for it"
	}
	return use, ""
}
