//go:build linux

package session

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/target"
	"goprof/testdata/jvmtest"
)

// matrixRow is one way to run a JVM. A JDK whose java refuses or ignores the flags has no such way.
type matrixRow struct {
	name  string
	flags []string
}

// matrixHeap makes all collectors work while they are watched.
const matrixHeap = "-Xmx200m"

// matrixRows are the collectors, each with all else at its default, and the modes, one at a time.
var matrixRows = []matrixRow{
	{"default", []string{matrixHeap}},
	{"Serial", []string{matrixHeap, "-XX:+UseSerialGC"}},
	{"Parallel", []string{matrixHeap, "-XX:+UseParallelGC"}},
	{"G1", []string{matrixHeap, "-XX:+UseG1GC"}},
	{"CMS", []string{matrixHeap, "-XX:+UseConcMarkSweepGC"}},
	{"Shenandoah", []string{matrixHeap, "-XX:+UseShenandoahGC"}},
	{"Shenandoah, generational", []string{matrixHeap, "-XX:+UseShenandoahGC", "-XX:ShenandoahGCMode=generational"}},
	{"ZGC", []string{matrixHeap, "-XX:+UseZGC"}},
	{"ZGC, +ZGenerational", []string{matrixHeap, "-XX:+UseZGC", "-XX:+ZGenerational"}},
	{"Epsilon", []string{"-Xmx6g", "-XX:+UseEpsilonGC"}}, // it collects nothing
	{"-Xint", []string{"-Xint"}},
	{"C1 only", []string{"-XX:TieredStopAtLevel=1"}},
	{"-TieredCompilation", []string{"-XX:-TieredCompilation"}},
	{"-UseCompressedOops", []string{"-XX:-UseCompressedOops"}},
	{"-UseCompressedClassPointers", []string{"-XX:-UseCompressedClassPointers"}},
	{"+UseCompactObjectHeaders", []string{"-XX:+UseCompactObjectHeaders"}},
	{"-UseCompactObjectHeaders", []string{"-XX:-UseCompactObjectHeaders"}},
	{"-SegmentedCodeCache", []string{"-XX:-SegmentedCodeCache"}},
	{"code cache of 6 MB", []string{"-XX:ReservedCodeCacheSize=6m"}},
	{"code cache of 240 MB", []string{"-XX:ReservedCodeCacheSize=240m"}},
	{"-Xshare:off", []string{"-Xshare:off"}},
	{"+PreserveFramePointer", []string{"-XX:+PreserveFramePointer"}},
	{"+DisableAttachMechanism", []string{"-XX:+DisableAttachMechanism"}},
}

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
				t.Run(row.name, func(t *testing.T) { matrixShadow(t, table, jdk, row, stops) })
			}
		}
		if only.MatchString(matrixJavac) {
			t.Run(matrixJavac, func(t *testing.T) { matrixSamples(t, table, jdk, 4*stops) })
		}
	})
	fmt.Print(table)
}

// matrixShadow holds a JVM against its own word, as TestShadow does.
func matrixShadow(t *testing.T, table *matrixTable, jdk jvmtest.JDK, row matrixRow, stops int) {
	flags := append([]string{"-XX:+UnlockExperimentalVMOptions"}, row.flags...)
	if why := refuses(jdk, flags); why != "" {
		table.set(jdk, row.name, "n/a")
		table.notes = append(table.notes, fmt.Sprintf("%v, %s: %s", jdk, row.name, why))
		t.Skip(why)
	}
	table.set(jdk, row.name, "FAILED")
	count := countShadow(t, jdk, flags, nil, stops)
	table.set(jdk, row.name, fmt.Sprintf("%d %d %d", count.stops, count.stops-count.truncated, count.verdicts[jvmtest.Mismatch]))
	count.judge(t, flags, stops)
}

const matrixJavac = "javac, sampled"

// matrixSamples takes samples of javac, as a recording does; nobody knows its stacks but to their roots.
func matrixSamples(t *testing.T, table *matrixTable, jdk jvmtest.JDK, n int) {
	table.set(jdk, matrixJavac, "FAILED")
	jvm := jvmtest.Start(t, jdk, "truth.JavacLoop", "--", "0", "200")
	got := sample(t, attach(t, jvm.PID), time.Millisecond, n, func(*target.Snapshot, *profile.Stack) {})
	table.set(jdk, matrixJavac, fmt.Sprintf("%d %d –", got.attempted(), got.whole))
	if missing := got.attempted() - got.whole; missing*1000 > 2*got.attempted() {
		t.Errorf("%d of %d samples are not whole, more than 0.2 %%", missing, got.attempted())
	}
}

// What a JVM prints of a flag that it does not have any more but starts all the same.
var ignoredFlag = regexp.MustCompile(`(?i)(ignoring option|is obsolete|support was removed|requires UseCompressed).*`)

// refuses asks a JDK's java whether it takes these flags. It returns its reason if not.
func refuses(jdk jvmtest.JDK, flags []string) string {
	out, err := exec.Command(jdk.Tool("java"), append(slices.Clone(flags), "-version")...).CombinedOutput()
	if why := ignoredFlag.Find(out); why != nil {
		return string(why)
	}
	if err == nil {
		return ""
	}
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "Picked up") && !strings.HasPrefix(line, "Error occurred") &&
			!strings.Contains(line, "was deprecated") {
			return line
		}
	}
	return err.Error()
}

// matrixTable is what came of it: by JDK and way "stops complete mismatches".
type matrixTable struct {
	jdks  []jvmtest.JDK
	cells map[[2]string]string
	notes []string
}

func (m *matrixTable) set(jdk jvmtest.JDK, row, cell string) {
	m.cells[[2]string{jdk.Home, row}] = cell
}

// String is the table in Markdown, and what it leaves out.
func (m *matrixTable) String() string {
	var b strings.Builder
	head, rule := "| stops complete mismatches |", "|---|"
	for _, jdk := range m.jdks {
		head += fmt.Sprintf(" %s %s |", cmp.Or(jdk.Label, "Debian"), jdk.Release)
		rule += "---|"
	}
	fmt.Fprintf(&b, "%s\n%s\n", head, rule)
	for _, row := range append(slices.Clone(matrixRows), matrixRow{name: matrixJavac}) {
		line, ran := "| "+row.name+" |", false
		for _, jdk := range m.jdks {
			cell := m.cells[[2]string{jdk.Home, row.name}]
			ran = ran || cell != ""
			line += " " + cell + " |"
		}
		if ran {
			fmt.Fprintln(&b, line)
		}
	}
	fmt.Fprint(&b, "\nn/a, in the words of java:\n\n")
	for _, note := range m.notes {
		fmt.Fprintln(&b, "- "+note)
	}
	return b.String()
}
