//go:build linux

package vmstructs

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"goprof/process"
	"goprof/testdata/jvmtest"
)

// compileSample compiles testdata/src once, for Java 8.
var compileSample = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "goprof-vmstructs-")
	if err != nil {
		return "", err
	}
	for _, jdk := range foundJDKs {
		javac := jdk.Tool("javac")
		if _, err := os.Stat(javac); err != nil {
			continue
		}
		args := []string{"-g", "-encoding", "UTF-8", "-Xlint:-options", "-d", dir, "testdata/src/Sample.java"}
		if jdk.Version > 8 {
			args = append([]string{"--release", "8"}, args...)
		}
		out, err := exec.Command(javac, args...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
		return dir, nil
	}
	return "", errors.New("no JDK here has a javac")
})

var foundJDKs []jvmtest.JDK

func TestMain(m *testing.M) {
	code := m.Run()
	if foundJDKs != nil {
		if dir, err := compileSample(); err == nil {
			os.RemoveAll(dir)
		}
	}
	os.Exit(code)
}

// live is a running Sample, as goprof reads it.
type live struct {
	jdk jvmtest.JDK
	pid int
	p   *process.Process
	vm  *VM
}

// eachLive runs a test on Sample in every JDK. jvmtest skips a JDK that is not installed, and reports that.
func eachLive(t *testing.T, flags []string, test func(t *testing.T, v *live)) {
	someLive(t, jvmtest.ForEachJDK, flags, test)
}

// someLive runs a test on Sample in the JDKs that over runs it on.
func someLive(t *testing.T, over func(*testing.T, func(*testing.T, jvmtest.JDK)), flags []string,
	test func(t *testing.T, v *live)) {
	foundJDKs = jvmtest.JDKs(t)
	dir, err := compileSample()
	if err != nil {
		t.Fatal(err)
	}
	over(t, func(t *testing.T, jdk jvmtest.JDK) { test(t, startLive(t, jdk, dir, flags)) })
}

func startLive(t *testing.T, jdk jvmtest.JDK, dir string, flags []string) *live {
	t.Helper()
	cmd := exec.Command(jdk.Tool("java"), append(flags, "-cp", dir, "Sample", "1500")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan error)
	done := make(chan struct{})
	// Pdeathsig belongs to the OS thread that starts the child, so this goroutine stays on that thread.
	go func() {
		started <- cmd.Start()
		<-done
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		close(done)
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		t.Log(lines.Text()) // a warning of the JVM
	}
	if lines.Text() != "ready" {
		t.Fatalf("%s ended: %v", jdk, lines.Err())
	}
	v := &live{jdk: jdk, pid: cmd.Process.Pid}
	if v.p, err = process.Open(v.pid); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.p.Close() })
	if v.vm, err = Open(v.p); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v *live) jcmd(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(v.jdk.Tool("jcmd"), append([]string{strconv.Itoa(v.pid)}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("jcmd %v: %v: %s", args, err, out)
	}
	return string(out)
}
