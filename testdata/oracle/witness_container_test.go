//go:build linux

package oracle

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"goprof/testdata/jvmtest"
)

// containerJars are Tomcat, in a version that runs on Java 8 and later, and what it needs.
var containerJars = [][3]string{ // group, artifact, version
	{"org.apache.tomcat.embed", "tomcat-embed-core", "9.0.98"},
	{"org.apache.tomcat", "tomcat-annotations-api", "9.0.98"},
}

// hearContainer asks the witnesses about a servlet container at rest. Its jars come by way of Maven,
// in this machine's own configuration, and stay in build/maven; where they are not to be had the
// test is skipped.
func hearContainer(t *testing.T, jdk jvmtest.JDK, gdb string) {
	t.Helper()
	args := []string{"--"}
	for _, jar := range containerJars {
		args = append(args, mavenJar(t, jar))
	}
	jvm := jvmtest.Start(t, jdk, "truth.WitnessContainer", args...)
	hearAll(t, jvm, gdb, jvm.Command("threads"))
}

// mavenJar returns the path of an artifact that Maven has fetched, now or before.
func mavenJar(t *testing.T, jar [3]string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "build", "maven"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, jar[1]+"-"+jar[2]+".jar")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	mvn, err := exec.LookPath("mvn")
	if err != nil {
		t.Skipf("a servlet container comes by Maven, which is not here: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, mvn, "-q", "-B", "dependency:copy",
		"-Dartifact="+jar[0]+":"+jar[1]+":"+jar[2], "-DoutputDirectory="+dir)
	cmd.Dir = t.TempDir() // no project's settings but the machine's
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("%s is not to be had: %v\n%s", jar[1], err, out)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("Maven has fetched %s, but where to? %v", jar[1], err)
	}
	return path
}
