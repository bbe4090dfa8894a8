//go:build linux

// Package jvmtest gives tests real JVMs. It finds the JDKs of the machine, compiles the programs of
// testdata/java, starts them, talks with them, and sees to it that none outlives its test.
//
// What it promises: a JVM that Start returns has reached the state that its program describes; at the
// end of the test the program has verified its own results, or the test fails; the process is reaped,
// also if the test binary is killed. Without a JDK a test is skipped, and says why, or fails where
// GOPROF_REQUIRE_JVM=1 is set (as make test does).
//
// Only tests import it, and it imports nothing of goprof.
package jvmtest

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// JDK is an installed Java, with its compiler or without.
type JDK struct {
	Version int    // 8, 17, 25
	Release string // 17.0.15
	Home    string
	Label   string // tells JDKs of one version apart, as GOPROF_JDKS has it
}

func (j JDK) String() string {
	if j.Label != "" {
		return fmt.Sprintf("jdk%d-%s", j.Version, j.Label)
	}
	return fmt.Sprintf("jdk%d", j.Version)
}

// Tool is the path of one of the JDK's commands, such as jcmd.
func (j JDK) Tool(name string) string { return filepath.Join(j.Home, "bin", name) }

// Vendor asks the JDK who made it, empty where nothing tells. goprof reads the file "release".
func (j JDK) Vendor(t testing.TB) string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(j.Home, "release")); err != nil {
		return "" // Debian's 8 has no file that would tell
	}
	out, err := exec.Command(j.Tool("java"), "-XshowSettings:properties", "-version").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if vendor, ok := strings.CutPrefix(strings.TrimSpace(line), "java.vendor = "); ok {
			return vendor
		}
	}
	return ""
}

func (j JDK) hasCompiler() bool { return executable(j.Tool("javac")) }

// JDKs returns all that were found, the oldest first: those that GOPROF_JDKS names
// ("17=/path:25=/path:25-temurin=/path"), else those under /usr/lib/jvm, and those of JAVA_HOME and the PATH.
// Without any, if GOPROF_JDKS is none, or in make quick, the test is skipped.
func JDKs(t testing.TB) []JDK {
	t.Helper()
	NotQuick(t, StartsJVM)
	found, err := find()
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		missing(t, "no JDK in GOPROF_JDKS, JAVA_HOME or /usr/lib/jvm")
	}
	return found
}

// ForEachJDK runs a subtest on every JDK.
func ForEachJDK(t *testing.T, test func(t *testing.T, jdk JDK)) {
	t.Helper()
	for _, jdk := range JDKs(t) {
		t.Run(jdk.String(), func(t *testing.T) { test(t, jdk) })
	}
}

// ForNewestJDK runs a subtest on the newest JDK alone, for what hardly depends on the JDK. Where GOPROF_JDKS names
// some, and with GOPROF_PROVE=1, it is on every one.
func ForNewestJDK(t *testing.T, test func(t *testing.T, jdk JDK)) {
	t.Helper()
	jdks := JDKs(t)
	if !all() {
		jdks = jdks[len(jdks)-1:]
	}
	for _, jdk := range jdks {
		t.Run(jdk.String(), func(t *testing.T) { test(t, jdk) })
	}
}

// missing skips the test, or fails it where JVMs are required.
func missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("GOPROF_REQUIRE_JVM") == "1" {
		t.Fatalf("GOPROF_REQUIRE_JVM=1, but: %s (scripts/jdk.sh installs one)", why)
	}
	t.Skipf("needs a JVM: %s (scripts/jdk.sh installs one)", why)
}

var find = sync.OnceValues(func() ([]JDK, error) {
	switch list := os.Getenv("GOPROF_JDKS"); list {
	case "":
	case "none":
		return nil, nil
	default:
		return parseList(list)
	}
	homes, err := filepath.Glob("/usr/lib/jvm/*")
	if err != nil {
		return nil, err
	}
	homes = append(homes, os.Getenv("JAVA_HOME"))
	if javac, err := exec.LookPath("javac"); err == nil {
		if javac, err = filepath.EvalSymlinks(javac); err == nil {
			homes = append(homes, filepath.Dir(filepath.Dir(javac)))
		}
	}
	return inspectAll(homes), nil
})

// parseList reads "17=/path:25-temurin=/path". What is named must be there.
func parseList(list string) ([]JDK, error) {
	var jdks []JDK
	for item := range strings.SplitSeq(list, ":") {
		name, home, ok := strings.Cut(item, "=")
		version, label, _ := strings.Cut(name, "-")
		number, err := strconv.Atoi(version)
		if !ok || err != nil {
			return nil, fmt.Errorf("GOPROF_JDKS: %q is neither VERSION=PATH nor VERSION-LABEL=PATH", item)
		}
		jdk := JDK{Version: number, Release: version, Home: home, Label: label}
		if !executable(jdk.Tool("java")) {
			return nil, fmt.Errorf("GOPROF_JDKS: no bin/java in %s", home)
		}
		if release, err := readRelease(home); err == nil {
			jdk.Release = release
		}
		jdks = append(jdks, jdk)
	}
	sortByVersion(jdks)
	return jdks, nil
}

// inspectAll keeps the homes that hold a JVM, each once although links lead to it, and of
// equal versions the first.
func inspectAll(homes []string) []JDK {
	var jdks []JDK
	seen := map[int]bool{}
	for _, home := range homes {
		home, err := filepath.EvalSymlinks(home)
		if err != nil || home == "" {
			continue
		}
		jdk, ok := inspect(home)
		if ok && !seen[jdk.Version] {
			seen[jdk.Version] = true
			jdks = append(jdks, jdk)
		}
	}
	sortByVersion(jdks)
	return jdks
}

func sortByVersion(jdks []JDK) {
	slices.SortStableFunc(jdks, func(a, b JDK) int { return cmp.Compare(a.Version, b.Version) })
}

func inspect(home string) (JDK, bool) {
	jdk := JDK{Home: home}
	release, err := readRelease(home)
	if err != nil || !executable(jdk.Tool("java")) {
		return JDK{}, false
	}
	jdk.Release = release
	jdk.Version = majorOf(release)
	return jdk, jdk.Version > 0
}

// readRelease takes JAVA_VERSION from the file "release" that every JDK has in its home.
func readRelease(home string) (string, error) {
	f, err := os.Open(filepath.Join(home, "release"))
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "JAVA_VERSION="); ok {
			return strings.Trim(value, `"`), nil
		}
	}
	return "", fmt.Errorf("%s names no JAVA_VERSION", f.Name())
}

// majorOf turns 1.8.0_402 into 8 and 17.0.15 into 17; 0 if it is no version.
func majorOf(release string) int {
	release = strings.TrimPrefix(release, "1.")
	end := strings.IndexFunc(release, func(r rune) bool { return r < '0' || r > '9' })
	if end >= 0 {
		release = release[:end]
	}
	major, err := strconv.Atoi(release)
	if err != nil {
		return 0
	}
	return major
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// JFRTool runs the JDK's own jfr command, which reads recordings.
func JFRTool(t testing.TB, jdk JDK, args ...string) string {
	t.Helper()
	out, err := exec.Command(jdk.Tool("jfr"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("jfr %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// ForDrawnJDK runs a subtest on one JDK, drawn by lot. If the subtest skips, another JDK is drawn; if it skips on each,
// nothing was tested, and that is as bad as no JDK. With GOPROF_JDKS and with GOPROF_PROVE=1 it runs on every JDK.
func ForDrawnJDK(t *testing.T, test func(t *testing.T, jdk JDK)) {
	t.Helper()
	if all() {
		ForEachJDK(t, test)
	} else {
		forDrawn(t, JDKs(t), test)
	}
}

func forDrawn(t *testing.T, left []JDK, test func(t *testing.T, jdk JDK)) {
	t.Helper()
	for len(left) > 0 {
		jdk := Drawn(t, 1, left)[0]
		left = slices.DeleteFunc(slices.Clone(left), func(j JDK) bool { return j == jdk })
		skips := true // so does a subtest that -run leaves out
		t.Run(jdk.String(), func(t *testing.T) {
			defer func() { skips = t.Skipped() }()
			test(t, jdk)
		})
		if !skips {
			return
		}
	}
	missing(t, "the test skips with each JDK of this machine")
}
