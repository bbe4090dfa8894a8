//go:build linux

package oracle

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"goprof/testdata/jvmtest"
)

// TestMain removes what tests share.
func TestMain(m *testing.M) {
	code := m.Run()
	if built.dir != "" {
		os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// built is the command of this run: a link of it takes as long as many a test.
var built struct {
	sync.Once
	dir string
	err error
}

// buildGoprof builds the command as users get it; where there is no Go, GOPROF_BINARY names one that was built
// elsewhere.
func buildGoprof(t testing.TB) string {
	t.Helper()
	jvmtest.NotQuick(t, jvmtest.Builds)
	if path := os.Getenv("GOPROF_BINARY"); path != "" {
		return path
	}
	built.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "goprof-oracle"); built.err == nil {
			built.err = linkGoprof(filepath.Join(built.dir, "goprof"))
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return filepath.Join(built.dir, "goprof")
}

func linkGoprof(path string) error {
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -E goprof/arch/entry.start", "-o", path,
		"goprof/cmd/goprof")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}
