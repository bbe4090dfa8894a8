//go:build linux

package oracle

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"goprof/profile"
	"goprof/profile/naming"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// languages are the programs of testdata/languages: names that must be seen as their sources have them, and
// what no name may have left of what the compilers made of it.
var languages = map[string]struct {
	want    []string
	mangled *regexp.Regexp // of their own methods
	fold    string
}{
	"kotlin": {[]string{"shop.ShopKt.spin", "shop.ShopKt.walk", "shop.ShopKt.walk$default", "shop.Meters.twice",
		"shop.ShopKt.my slow-Function",
		"shop.ShopKt.plain-default", "shop.Box.slow", "shop.Box.withDefault$default", "kotlin.text.StringsKt.split"},
		regexp.MustCompile(`\.(walk|slow|twice)-|__StringsKt\.`), "[lambda]"},
	"scala": {[]string{"shop.Ops$.spin", "shop.Vec.+", "shop.Vec.++:", "shop.Vec.size_=", "shop.Special.id",
		"shop.Main$Deep$.down", "shop.Main$.main"},
		regexp.MustCompile(`^shop\..*(\$plus|\$eq|\$colon)`), "[lambda]"},
	"groovy": {[]string{"shop.Box.slow", "shop.Box.spin", "shop.Shop.run", "shop.Shop$_run_closure1.doCall",
		"shop.Box$_slow_closure1.doCall"},
		regexp.MustCompile(`\+0x`), "[groovy calls]"},
	"jruby": {[]string{"shop.spin", "shop.slow?", "shop.price=", "shop.[]", "shop.block in blocky", "shop.make",
		"shop.<top>"},
		regexp.MustCompile(`RUBY\$`), "[ruby calls]"},
}

// languageWait bounds how long all names may take to be seen: JRuby compiles late.
const languageWait = 5 * time.Minute

// TestLanguages: what real compilers make of names is undone. make test-languages fetches them, and runs it
// with GOPROF_LANGUAGES; without, TestMethod of package naming holds names that were taken from them.
func TestLanguages(t *testing.T) {
	dir := os.Getenv("GOPROF_LANGUAGES")
	if dir == "" {
		t.Skip("make test-languages runs it")
	}
	jdks := slices.DeleteFunc(slices.Clone(jvmtest.JDKs(t)), func(j jvmtest.JDK) bool { return j.Version < 17 })
	for _, language := range slices.Sorted(maps.Keys(languages)) {
		t.Run(language, func(t *testing.T) {
			seen, folded := languageNames(t, startLanguage(t, jdks[0], filepath.Join(dir, language)), languages[language].want)
			for _, want := range languages[language].want {
				if !seen[want] {
					t.Errorf("%s was not seen", want)
				}
			}
			for name := range seen {
				if languages[language].mangled.MatchString(name) {
					t.Errorf("%s is mangled", name)
				}
			}
			if !folded[languages[language].fold] {
				t.Errorf("no %s: %v", languages[language].fold, slices.Sorted(maps.Keys(folded)))
			}
		})
	}
}

func startLanguage(t *testing.T, jdk jvmtest.JDK, dir string) (pid int) {
	t.Helper()
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	cmd := exec.Command(jdk.Tool("java"), append([]string{"-cp", read("classpath")}, strings.Fields(read("main"))...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // "killed" is what was asked for
	})
	return cmd.Process.Pid
}

// languageNames samples until all wanted names were seen, or it takes too long. Folded are names of the folds.
func languageNames(t *testing.T, pid int, want []string) (seen, folded map[string]bool) {
	t.Helper()
	s, err := attachSoon(pid)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	seen, folded = map[string]bool{}, map[string]bool{}
	script := regexp.MustCompile(`^.*\.(shop\.)`) // JRuby's class is the path of the script
	ctx, cancel := context.WithTimeout(context.Background(), languageWait)
	defer cancel()
	all := func(p *profile.Profile, _ *profile.Summary) {
		p.Each(func(frames []profile.Frame, _ int64) {
			plumbing := make([]naming.Plumbing, len(frames))
			for i, f := range frames {
				if f.Kind.Java() {
					seen[script.ReplaceAllString(f.Func.Name, "$1")] = true
					plumbing[i] = naming.PlumbingOf(f.Func.Name)
				}
			}
			naming.Fold(plumbing, func(int) {}, func(_ int, what naming.Plumbing) { folded[what.String()] = true })
		})
		if !slices.ContainsFunc(want, func(name string) bool { return !seen[name] }) {
			cancel()
		}
	}
	visits := make(chan session.Visit)
	go func() {
		for {
			select {
			case visits <- all:
				time.Sleep(time.Second)
			case <-ctx.Done():
				return
			}
		}
	}()
	if _, _, err := s.Record(ctx, session.RecordOptions{Interval: 3 * time.Millisecond, Visits: visits}); err != nil {
		t.Fatal(err)
	}
	return seen, folded
}

// attachSoon waits for a JVM that has just been started.
func attachSoon(pid int) (s *session.Session, err error) {
	for range 100 {
		if s, err = session.Attach(pid); err == nil {
			return s, nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return nil, err
}
