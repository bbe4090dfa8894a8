package sources

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"goprof/output/jfr"
)

// RealJFR writes a JFR file of a Source's samples, and is the Source that reads it.
func RealJFR(t testing.TB, from *Fake, wall bool) *JFR {
	t.Helper()
	var file bytes.Buffer
	w := jfr.NewWriter(&file, jfr.Options{})
	check := func(err error) {
		if err != nil {
			t.Helper()
			t.Fatal(err)
		}
	}
	for i := range from.Samples {
		check(w.Sample(&from.Samples[i]))
	}
	check(w.Close(At(from.Is.Meta.Duration)))
	j := &JFR{Path: filepath.Join(t.TempDir(), "real.jfr"), Wall: wall}
	check(os.WriteFile(j.Path, file.Bytes(), 0o600))
	return j
}

// Viewers is the folder of the npm packages that scripts/readers.sh fetches. A test that needs them is skipped, loudly,
// where they have not been fetched.
func Viewers(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("GOPROF_VIEWERS")
	if dir == "" {
		t.Skip("NOT CHECKED by the viewers themselves: GOPROF_VIEWERS is not set. make test-readers fetches them and sets it")
	}
	return dir
}

// Script writes a script for node into a folder of the test's.
func Script(t testing.TB, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "script.cjs")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Node is the node of that folder.
func Node(t testing.TB) string { return filepath.Join(Viewers(t), "node", "bin", "node") }
