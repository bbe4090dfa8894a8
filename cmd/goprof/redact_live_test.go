//go:build linux

package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"goprof/cmd/goprof/exit"
	"goprof/output/snap"
	"goprof/testdata/jvmtest"
)

// planted are the secrets in testdata/java/ZorblattVault.java, and in the way in which this test starts it.
var planted = []string{"zorblatt", "quuxledger", "murgatroyd", "frobnicate", "snorkel", "whistle", "ibexTotal",
	"kerfuffle",
	"grumpkin", "flummox", "flibberti", "8675309", "10.11.12.13", "wobblegong", "payroll", "hushpuppy", "bandersnatch",
	"4929123412341234", "jabber", "wocky", "abracadabra", "xyzzy", "plugh", "trifleFile"}

// ownName is in the names of this test's recordings. goprof prints it when it says what it wrote. It is not in the
// files.
const ownName = "wobblegong-own"

// TestNoSecretIsLeft: a program full of secrets is recorded in all formats and dumped, and the JDK's own recorder
// records it. Of its secrets nothing is left in any redacted file. In its long form the test does so with all JDKs.
func TestNoSecretIsLeft(t *testing.T) {
	t.Parallel()
	jvmtest.NotQuick(t, jvmtest.StartsJVM)
	jdks := jvmtest.JDKs(t)
	if os.Getenv("GOPROF_PROVE") != "1" {
		jdks = jdks[len(jdks)-1:]
	}
	for _, jdk := range jdks {
		t.Run(strconv.Itoa(jdk.Version), func(t *testing.T) { secretsOf(t, jdk) })
	}
}

// looking runs goprof, which must end with the given code. It returns the output. A recording is repeated until it
// has a sample.
func looking(t *testing.T, dir string, want exit.Code, args ...string) string {
	t.Helper()
	code, out := exit.NoSamples, []byte(nil)
	for tries := 0; tries == 0 || args[0] == "record" && code == exit.NoSamples && tries < recordTries; tries++ {
		cmd := exec.CommandContext(t.Context(), "goprof", args...)
		cmd.Dir = dir
		out, _ = cmd.CombinedOutput()
		code = exit.Code(cmd.ProcessState.ExitCode())
	}
	if code != want {
		t.Fatalf("goprof %s: exit code %d, want %d\n%s", strings.Join(args, " "), code, want, out)
	}
	return string(out)
}

func secretsOf(t *testing.T, jdk jvmtest.JDK) {
	dir := t.TempDir()
	home := filepath.Join(dir, "hushpuppy-home")
	put(t, filepath.Join(home, "wobblegong-payroll-2019.txt"), "nothing")
	put(t, filepath.Join(dir, "words"), strings.Join(planted, "\n"))
	put(t, filepath.Join(dir, "case.key"), "a key of thirty-two bytes or more")
	put(t, filepath.Join(dir, "hs_err_pid7.log"), crashOf(t)+"\njava_command: "+strings.Join(planted, " "))
	pid, recorded := secretive(t, jdk, "ZorblattVault", dir, home)
	common := []string{"--redact", "default", "--redact-key", "case.key"}
	formats := []string{".html", ".jfr", ".pb.gz", ".speedscope.json", ".firefox.json.gz", ".collapsed", ".svg", ".json"}
	if os.Getenv("GOPROF_PROVE") != "1" {
		formats = formats[:5]
	}
	for _, format := range formats {
		name := ownName + format
		args := append([]string{"record", "--pid", pid, "-d", "500ms", "-v", "--mode", "wall", "-o", name,
			"--summary", "sum.json",
			"--redact-map", "names.map"}, common...)
		said := looking(t, dir, exit.OK, args...)
		put(t, filepath.Join(dir, "account"), strings.ReplaceAll(said, ownName, ""))
		for _, file := range []string{name, "sum.json", "account"} {
			looking(t, dir, exit.OK, "redact", file, "--verify", "words")
		}
	}
	if names, _ := os.ReadFile(filepath.Join(dir, "names.map")); !bytes.Contains(names, []byte("\tzorblattcorp\n")) {
		t.Errorf("the map lacks the program's package:\n%s", names)
	}
	looking(t, dir, exit.OK, "record", "--pid", pid, "-d", "500ms", "-q", "-o", "plain.jfr")
	looking(t, dir, exit.NamesLeft, "redact", "plain.jfr", "--verify", "words")
	for _, f := range []string{"text", "json", "jstack"} {
		put(t, filepath.Join(dir, "dump."+f), looking(t, dir, exit.OK, append([]string{"dump", pid, "-f", f},
			common...)...))
		looking(t, dir, exit.OK, "redact", "dump."+f, "--verify", "words")
	}
	answers(t, dir, pid, common)
	snapped := looking(t, dir, exit.OK, append([]string{"snap", pid, "-d", "1s", "-o", "all.zip"}, common...)...)
	looking(t, dir, exit.OK, "redact", "all.zip", "--verify", "words")
	for _, p := range states(t, filepath.Join(dir, "all.zip")) {
		if p.State != snap.Kept {
			t.Errorf("%s: %s, %s\n%s", p.Name, p.State, p.Why, snapped)
		}
	}
	put(t, filepath.Join(dir, "plain.json"), looking(t, dir, exit.OK, "dump", pid, "--json"))
	kill, _ := strconv.Atoi(pid)
	syscall.Kill(kill, syscall.SIGTERM)
	<-recorded
	files := []string{"plain.jfr", "plain.json"}
	if jdk.Version >= 11 {
		files = append(files, "jdk.jfr")
	}
	for _, name := range files {
		for _, to := range []string{"r-" + name, "r.collapsed", "r.pb.gz", "r.html", "r.speedscope.json"} {
			if name == "plain.json" && !strings.HasSuffix(to, "n.json") {
				continue
			}
			looking(t, dir, exit.OK, "redact", name, "-o", to, "--key", "case.key", "--verify", "words")
		}
	}
	sameShape(t, jdk, dir, files)
}

// crashOf is a crash file of a JVM.
func crashOf(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../triage/hserr/testdata/kill25.txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// answers are the outputs of commands that look once.
func answers(t *testing.T, dir, pid string, common []string) {
	t.Helper()
	lines := []string{"locks " + pid, "locks --json " + pid, "top --once -d 500ms " + pid,
		"top --once -d 500ms --json " + pid}
	if os.Getenv("GOPROF_PROVE") == "1" {
		lines = append(lines, "triage --json -d 4s "+pid)
	}
	for _, line := range lines {
		cmd := exec.CommandContext(t.Context(), "goprof", append(strings.Fields(line), common...)...)
		cmd.Dir = dir
		out, err := cmd.Output()
		if code := exit.Code(cmd.ProcessState.ExitCode()); len(out) == 0 || code != exit.OK && code != exit.Found {
			t.Fatalf("%s: %v, exit code %d", line, err, code)
		}
		put(t, filepath.Join(dir, "answer"), string(out))
		looking(t, dir, exit.OK, "redact", "answer", "--verify", "words")
	}
}

// sameShape compares recordings before and after redaction.
func sameShape(t *testing.T, jdk jvmtest.JDK, dir string, files []string) {
	for _, name := range files {
		if !strings.HasSuffix(name, ".jfr") {
			continue
		}
		before, after := counted(looking(t, dir, exit.OK, "convert", name, "-f", "collapsed", "-o", "-")),
			counted(looking(t, dir, exit.OK, "convert", "r-"+name, "-f", "collapsed", "-o", "-"))
		if before == "" || before != after {
			t.Errorf("%s: the stacks were\n%s\nand are\n%s", name, before, after)
		}
		if tool := jdk.Tool("jfr"); jdk.Version >= 17 {
			if out, err := exec.Command(tool, "print", filepath.Join(dir, "r-"+name)).CombinedOutput(); err != nil {
				t.Errorf("jfr print: %v\n%.2000s", err, out)
			}
		}
	}
}

// counted is the depth and the count of each stack, in an order that does not depend on names.
func counted(collapsed string) string {
	depths := map[[2]int]int{}
	most := 0
	for line := range strings.Lines(collapsed) {
		at := strings.LastIndexByte(strings.TrimSpace(line), ' ')
		if at < 0 {
			continue
		}
		n, _ := strconv.Atoi(strings.TrimSpace(line[at+1:]))
		depth := strings.Count(line[:at], ";")
		depths[[2]int{depth, n}]++
		most = max(most, depth)
	}
	var b strings.Builder
	for d := range most + 1 {
		for n := range 10_000 {
			if k := depths[[2]int{d, n}]; k > 0 {
				b.WriteString(strconv.Itoa(d) + ":" + strconv.Itoa(n) + "x" + strconv.Itoa(k) + " ")
			}
		}
	}
	return b.String()
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// secretive starts the program. recorded is closed when that program has ended.
func secretive(t *testing.T, jdk jvmtest.JDK, class, dir, home string) (pid string, recorded <-chan struct{}) {
	t.Helper()
	options := []string{"-Dplugh.token=xyzzy-4711"}
	if jdk.Version >= 11 {
		options = append(options, "-Xlog:gc,class+load:file="+filepath.Join(dir, "hushpuppy-gc.log"))
		options = append(options, "-XX:StartFlightRecording=settings=profile,filename="+filepath.Join(dir, "jdk.jfr"))
	}
	options = append(options, "--", "600", home, "--password=abracadabra")
	line := jvmtest.CommandLine(t, jdk, "com.zorblattcorp.quuxledger."+class, options...)
	cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
	cmd.Env = append(os.Environ(), "SNARK_TOKEN=abracadabra-too")
	cmd.Dir = dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-ended
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "READY" {
	}
	go func() {
		for lines.Scan() {
		}
		cmd.Wait()
		close(ended)
	}()
	return strconv.Itoa(cmd.Process.Pid), ended
}
