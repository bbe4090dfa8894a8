package vmstructs

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
)

// writeTables writes the tables of a JVM as lines of words between tabs. It leaves out the addresses of static fields,
// which differ in each run.
func writeTables(w io.Writer, j jdkTables) {
	fmt.Fprintf(w, "jdk\t%s\n", j.name)
	var lines []string
	for name, f := range j.tab.fields {
		static, offset := "0", fmt.Sprint(f.offset)
		if f.static {
			static, offset = "1", "s"
		}
		lines = append(lines, fmt.Sprintf("field\t%s\t%s\t%s\t%s\t%s", name.typ, name.field, static, offset, f.typ))
	}
	for name, size := range j.tab.sizes {
		lines = append(lines, fmt.Sprintf("type\t%s\t\t\t%d", name, size))
	}
	for name, v := range j.tab.ints {
		lines = append(lines, fmt.Sprintf("int\t%s\t\t\t%d", name, v))
	}
	for name, v := range j.tab.longs {
		lines = append(lines, fmt.Sprintf("long\t%s\t\t\t%d", name, v))
	}
	slices.Sort(lines)
	fmt.Fprintln(w, strings.Join(lines, "\n"))
}

func TestWriteTables(t *testing.T) {
	for _, j := range loadTables(t) {
		var b bytes.Buffer
		writeTables(&b, j)
		again := parseDumps(t, &b)
		if len(again) != 1 || again[0].name != j.name || !maps.Equal(again[0].tab.sizes, j.tab.sizes) ||
			!maps.Equal(again[0].tab.ints, j.tab.ints) || !maps.Equal(again[0].tab.longs, j.tab.longs) ||
			len(again[0].tab.fields) != len(j.tab.fields) {
			t.Fatalf("%s is not what it was", j.name)
		}
		for name, want := range j.tab.fields {
			got := again[0].tab.fields[name]
			if want.addr, got.addr = 0, 0; got != want {
				t.Errorf("%s: %v is %+v, was %+v", j.name, name, got, want)
			}
		}
	}
}
