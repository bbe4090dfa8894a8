//go:build linux

package jvmtest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Classes returns the directory of the compiled programs of testdata/java. They are compiled once
// for each state of the sources, by the oldest JDK at hand, for Java 8 where it can. A machine that is
// too slow to compile them is given them: GOPROF_CLASSES names the directory.
func Classes(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv("GOPROF_CLASSES"); dir != "" {
		return dir
	}
	var compiler *JDK
	for _, jdk := range JDKs(t) {
		if jdk.hasCompiler() {
			compiler = &jdk
			break
		}
	}
	if compiler == nil {
		missing(t, "none of the Java installations has a javac")
	}
	dir, err := compileOnce(*compiler)
	if err != nil {
		t.Fatalf("compiling testdata/java: %v", err)
	}
	return dir
}

var compiled struct {
	sync.Mutex
	dir string
}

// compileOnce also serves test binaries that run at the same time: one compiles, and the others wait for it. The
// directory's name holds a checksum of what is in it.
func compileOnce(jdk JDK) (string, error) {
	compiled.Lock()
	defer compiled.Unlock()
	if compiled.dir != "" {
		return compiled.dir, nil
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	sources, sum, err := readSources(filepath.Join(root, "testdata", "java"), jdk)
	if err != nil {
		return "", err
	}
	cache := filepath.Join(root, "build", "java")
	dir := filepath.Join(cache, sum)
	if _, err := os.Stat(dir); err == nil {
		compiled.dir = dir
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	unlock, err := lockDir(cache)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		compiled.dir = dir
		return dir, nil
	}
	work, err := os.MkdirTemp(cache, "compiling-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := compile(jdk, sources, work); err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(work, "classes"), dir); err != nil {
		return "", err
	}
	compiled.dir = dir
	return dir, nil
}

// lockDir waits until no other process has locked the directory.
func lockDir(dir string) (unlock func() error, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, err
	}
	return f.Close, nil
}

// moduleRoot is the directory above testdata/java; a test runs in its package's directory, below it.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "testdata", "java")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no testdata/java above the working directory")
		}
		dir = up
	}
}

type source struct {
	name string
	text string
}

// readSources returns the Java files of a directory and of the folders in it, their line numbers put in, and a checksum
// of all that their class files depend on.
func readSources(dir string, jdk JDK) ([]source, string, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.java"))
	if err != nil {
		return nil, "", err
	}
	below, err := filepath.Glob(filepath.Join(dir, "*", "*.java")) // no two files have the same name
	if err != nil {
		return nil, "", err
	}
	paths = append(paths, below...)
	slices.Sort(paths)
	sum := sha256.New()
	fmt.Fprintln(sum, jdk.Release, javacOptions(jdk))
	var sources []source
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, "", err
		}
		s := source{filepath.Base(path), withLineNumbers(string(text))}
		fmt.Fprintln(sum, s.name, len(s.text), s.text)
		sources = append(sources, s)
	}
	return sources, fmt.Sprintf("%x", sum.Sum(nil)[:12]), nil
}

// The calls of ShadowStack.at: the line number is put in here, so that a program's idea of its lines
// comes from its text and not from the JVM whose line tables are to be checked.
var lineMark = regexp.MustCompile(`([(=] *)__LINE__\b`)

func withLineNumbers(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		lines[i] = lineMark.ReplaceAllString(line, "${1}"+strconv.Itoa(i+1))
	}
	return strings.Join(lines, "")
}

func javacOptions(jdk JDK) []string {
	options := []string{"-g", "-nowarn", "-encoding", "UTF-8"}
	if jdk.Version > 8 {
		// -options: that Java 8 is an old release is no news.
		options = append(options, "--release", "8", "-Xlint:-options")
	}
	return options
}

func compile(jdk JDK, sources []source, work string) error {
	classes := filepath.Join(work, "classes")
	if err := os.Mkdir(classes, 0o755); err != nil {
		return err
	}
	args := append(javacOptions(jdk), "-d", classes)
	for _, s := range sources {
		path := filepath.Join(work, s.name)
		if err := os.WriteFile(path, []byte(s.text), 0o644); err != nil {
			return err
		}
		args = append(args, path)
	}
	cmd := exec.Command(jdk.Tool("javac"), args...)
	cmd.Env = cleanEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd.Path, err, out)
	}
	return nil
}

// cleanEnv is the environment without what would change a JVM behind a test's back.
func cleanEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == "JAVA_TOOL_OPTIONS" || name == "_JAVA_OPTIONS" || name == "JDK_JAVA_OPTIONS" || name == "CLASSPATH"
	})
}
