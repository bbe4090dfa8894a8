package redaction

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// filler has no word in it, and is not base64.
func filler(n int) []byte { return bytes.Repeat([]byte("a line. "), n/8+1)[:n] }

func zipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

// small is the size of the windows in these tests.
const small = 64 << 10

// TestSearchInWindows: a word across the border of two windows is found, also in packed text.
func TestSearchInWindows(t *testing.T) {
	var page bytes.Buffer
	z, _ := flate.NewWriter(&page, 9)
	for i := range 200 {
		fmt.Fprintf(z, "%x hushpuppy ", i*i*i)
	}
	z.Close()
	run := base64.StdEncoding.EncodeToString(append(bytes.Repeat([]byte("0123456789"), 20), "grumpkin"...))
	packed := base64.StdEncoding.EncodeToString(page.Bytes())
	names := `"names":["Aaaaa","Dgrum","Epkin"]`
	for what, c := range map[string]struct{ plain, word string }{
		"a word": {"zorblatt", "zorblatt"}, "capital": {"ZÖRBLATT", "zörblatt"}, "base64": {" " + run + " ", "grumpkin"},
		"a packed page": {" " + packed + " ", "hushpuppy"}, "names": {names, "aaagrum"},
	} {
		for cut := 1; cut < len(c.plain); cut += 1 + len(c.plain)/40 {
			file := slices.Concat(filler(small-cut), []byte(c.plain), filler(small))
			for how, b := range map[string][]byte{"plain": file, "gzip": zipped(file)} {
				left, err := searchBy(bytes.NewReader(b), small, c.word, "absent")
				if err != nil || len(left) != 1 || left[0].Word != c.word {
					t.Errorf("%s, %s, cut after %d: %v %v", what, how, cut, left, err)
				}
			}
		}
	}
}

// TestNamesBeginInTwoWindows: the text before a page's names is longer than a short word, so a border may be inside it.
func TestNamesBeginInTwoWindows(t *testing.T) {
	names := `"names":["Aaaaa","Dgrum","Epkin"]`
	for cut := 1; cut < len(beginNames); cut++ {
		file := slices.Concat(filler(small-cut), []byte(names), filler(small))
		if left, err := searchBy(bytes.NewReader(file), small, "agr"); err != nil || len(left) != 1 {
			t.Errorf("cut after %d: %v %v", cut, left, err)
		}
	}
}

// TestSearchOfLongRun: packed text that is longer than a window is not searched as a whole, and the result says so.
func TestSearchOfLongRun(t *testing.T) {
	long := bytes.Repeat([]byte("Ab0/"), small)
	if left, err := searchBy(bytes.NewReader(long), small, "absent"); err == nil || len(left) != 0 {
		t.Errorf("%v %v", left, err)
	}
}

// endless gives n bytes of filler.
type endless struct{ n int }

func (e *endless) Read(b []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n := copy(b, filler(min(len(b), e.n, 1<<16)))
	e.n -= n
	return n, nil
}

// TestSearchOfLargeFile: only some MB of a file are in memory, whatever its length. The long form has a file of 1 GB.
func TestSearchOfLargeFile(t *testing.T) {
	size := 24 << 20
	if os.Getenv("GOPROF_PROVE") == "1" {
		size = 1 << 30
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	left, err := Search(io.MultiReader(&endless{size}, strings.NewReader("zorblatt")), []string{"zorblatt", "absent"})
	runtime.ReadMemStats(&after)
	if err != nil || len(left) != 1 {
		t.Errorf("%v %v", left, err)
	}
	grown := int64(after.Sys) - int64(before.Sys)
	t.Logf("%d MB: %d MB more of the machine's memory", size>>20, grown>>20)
	if grown > 128<<20 {
		t.Errorf("%d MB", grown>>20)
	}
}
