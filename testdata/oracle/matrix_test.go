//go:build linux

package oracle

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"goprof/profile"
	"goprof/sampler/look"
	"goprof/testdata/jvmtest"
)

// TestMatrix is make test-matrix: every JDK in every way to run it. It takes an hour, so it runs only
// with GOPROF_MATRIX=stops, and prints a table of what it saw. GOPROF_MATRIX_ROWS picks ways by a
// regular expression.
func TestMatrix(t *testing.T) {
	stops, _ := strconv.Atoi(os.Getenv("GOPROF_MATRIX"))
	if stops <= 0 {
		t.Skip("make test-matrix runs it")
	}
	only, err := regexp.Compile(os.Getenv("GOPROF_MATRIX_ROWS"))
	if err != nil {
		t.Fatal(err)
	}
	table := &matrixTable{cells: map[[2]string]string{}}
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		table.jdks = append(table.jdks, jdk)
		for _, row := range matrixRows {
			if only.MatchString(row.name) {
				t.Run(row.name, func(t *testing.T) { matrixCell(t, table, jdk, row, stops) })
			}
		}
		if only.MatchString(matrixJavac) {
			t.Run(matrixJavac, func(t *testing.T) { matrixSamples(t, table, jdk, 4*stops) })
		}
	})
	fmt.Print(table)
}

// matrixCell runs a JDK in one way.
func matrixCell(t *testing.T, table *matrixTable, jdk jvmtest.JDK, row matrixRow, stops int) {
	flags := append([]string{"-XX:+UnlockExperimentalVMOptions"}, row.flags...)
	why := refuses(jdk, flags)
	if why == "" && row.ready != nil {
		var more []string
		if more, why = row.ready(t, jdk, flags); why == "" {
			flags = append(flags, more...)
			why = refuses(jdk, flags)
		}
	}
	if why != "" {
		table.set(jdk, row.name, "n/a")
		table.notes = append(table.notes, fmt.Sprintf("%v, %s: %s", jdk, row.name, why))
		t.Skip(why)
	}
	table.set(jdk, row.name, "FAILED")
	run := row.run
	if run == nil {
		run = matrixShadow
	}
	table.set(jdk, row.name, run(t, jdk, flags, stops))
}

// matrixShadow holds a JVM against its own word, as TestShadow does.
func matrixShadow(t *testing.T, jdk jvmtest.JDK, flags []string, stops int) string {
	return matrixShadowOf(t, jdk, flags, nil, stops)
}

// matrixShallow is matrixShadow for stacks in which no 1,000 frames have room: up to 11 the JVM takes half of 256 KB
// for itself (StackShadowPages).
func matrixShallow(t *testing.T, jdk jvmtest.JDK, flags []string, stops int) string {
	return matrixShadowOf(t, jdk, flags, []string{"1", "1", "shallow"}, stops)
}

// matrixGraal waits for code of the compiler that it is about: it is written in Java, and has to be compiled itself
// before it compiles much.
func matrixGraal(t *testing.T, jdk jvmtest.JDK, flags []string, stops int) string {
	jvm, path := startShadow(t, jdk, flags, nil)
	count := watchShadow(t, jvm, path, false, stops)
	for tries := 0; count.c2*10 < count.stops && tries < 20; tries++ {
		time.Sleep(time.Second)
		count = watchShadow(t, jvm, path, false, stops)
	}
	if count.c2 == 0 {
		t.Error("no code of the compiler that this is about was seen")
	}
	return judgeCell(t, count, flags, stops)
}

func matrixShadowOf(t *testing.T, jdk jvmtest.JDK, flags, args []string, stops int) string {
	count := countShadow(t, jdk, flags, args, stops)
	return judgeCell(t, count, flags, stops)
}

func judgeCell(t *testing.T, count *shadowCount, flags []string, stops int) string {
	t.Helper()
	count.judge(t, flags, stops)
	if count.truncated > max(1, count.stops/1000) { // one is no share of fewer
		t.Errorf("%d of %d stacks are truncated, more than 0.1 %%: %v", count.truncated, count.stops, count.reasons)
	}
	return cellOf(count)
}

func cellOf(count *shadowCount) string {
	return fmt.Sprintf("%d %d %d", count.stops, count.stops-count.truncated, count.verdicts[jvmtest.Mismatch])
}

const matrixJavac = "javac, sampled"

// matrixSamples takes samples of javac, as a recording does; nobody knows its stacks but to their roots.
func matrixSamples(t *testing.T, table *matrixTable, jdk jvmtest.JDK, n int) {
	if _, err := os.Stat(filepath.Join(jdk.Home, "bin", "javac")); err != nil {
		table.set(jdk, matrixJavac, "n/a")
		t.Skip("a runtime without javac")
	}
	table.set(jdk, matrixJavac, "FAILED")
	jvm := jvmtest.Start(t, jdk, "truth.JavacLoop", "--", "0", "200")
	got := sample(t, attach(t, jvm.PID), time.Millisecond, n, func(*look.Look, *profile.Stack) {})
	table.set(jdk, matrixJavac, fmt.Sprintf("%d %d –", got.attempted(), got.whole))
	if missing := got.attempted() - got.whole; missing*1000 > 2*got.attempted() {
		t.Errorf("%d of %d samples are not whole, more than 0.2 %%", missing, got.attempted())
	}
}
