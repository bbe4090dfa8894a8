//go:build linux

package main

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"goprof/annotate"
	"goprof/output"
	"goprof/testdata/jvmtest"
)

// TestAnnotate: truth.HotLine knows which line takes which share. Of its machine code and bytecodes, objdump and javap
// say the same as goprof.
func TestAnnotate(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.HotLine")
		var hot int32
		var share float64
		if _, err := fmt.Sscan(jvm.Command("truth")[0], &hot, &share); err != nil {
			t.Fatal(err)
		}
		page := annotated(t, "HotLine::work", "--pid", strconv.Itoa(jvm.PID), "-d", "2s", "--asm")
		for try := 0; try < 10 && (len(page.Code) == 0 || page.Code[0].Compiler != "C2" || page.Self < 200); try++ {
			page = annotated(t, "HotLine::work", "--pid", strconv.Itoa(jvm.PID), "-d", "2s", "--asm")
		}
		if page.Method != "truth.HotLine.work" || page.File != "HotLine.java" || len(page.Methods) != 1 {
			t.Fatalf("%s of %s: %d methods, %q", page.Method, page.File, len(page.Methods), page.Notes)
		}
		if jdk.Version < 10 { // its counted loops have no polls, so no record tells one loop from the other
			share = 0
		}
		checkHotLine(t, page, hot, share)
		checkBytecodes(t, jdk, page)
		for i := range page.Code {
			checkCode(t, page, &page.Code[i])
		}
		checkFile(t, jvm, hot, share)
	})
}

// annotated runs the command, and reads its JSON.
func annotated(t *testing.T, args ...string) *annotate.Page {
	t.Helper()
	cmd := exec.Command("goprof", append([]string{"annotate", "--json"}, args...)...)
	var errors strings.Builder
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v: %s", args, err, errors.String())
	}
	page := new(annotate.Page)
	if err := json.Unmarshal(out, page); err != nil {
		t.Fatalf("%v: %.500s", err, out)
	}
	return page
}

func checkHotLine(t *testing.T, page *annotate.Page, hot int32, share float64) {
	t.Helper()
	var self, all int64
	for _, l := range page.Methods[0].Lines {
		switch all += l.Self; l.Line {
		case hot:
			self = l.Self
		case 0, hot + 1:
		default:
			if l.Self > page.Self/20 {
				t.Errorf("line %d has %d of %d samples", l.Line, l.Self, page.Self)
			}
		}
	}
	if all != page.Self || page.Total < page.Self || page.All < page.Total {
		t.Errorf("lines have %d samples, the method %d of %d, all are %d", all, page.Self, page.Total, page.All)
	}
	got := float64(self) / float64(all)
	t.Logf("line %d has %.3f of %d samples, truth %.3f", hot, got, all, share)
	if luck := 5 * math.Sqrt(share*(1-share)/float64(all)); math.Abs(got-share) > luck+0.02 {
		t.Errorf("line %d has %.3f of %d samples, truth %.3f", hot, got, all, share)
	}
}

var javapCode = regexp.MustCompile(`(?m)^ +(\d+): (\w+)`)

// checkBytecodes compares the bytecodes with those of javap.
func checkBytecodes(t *testing.T, jdk jvmtest.JDK, page *annotate.Page) {
	t.Helper()
	out, err := exec.Command(jdk.Tool("javap"), "-c", "-p", "-cp", jvmtest.Classes(t), "truth.HotLine").Output()
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(out), "long work(long)")
	text, _, _ = strings.Cut(text, "\n\n")
	var want, got []string
	for _, m := range javapCode.FindAllStringSubmatch(text, -1) {
		want = append(want, m[1]+" "+m[2])
	}
	named := 0
	for _, r := range page.Methods[0].Rows {
		if r.BCI < 0 {
			continue
		}
		op, operand, _ := strings.Cut(r.Bytecode, " ")
		got = append(got, fmt.Sprint(r.BCI, " ", op))
		if strings.HasPrefix(operand, "java.lang.Throwable.getStackTrace()[Ljava/lang/StackTraceElement;") ||
			operand == "truth.HotLine.line" || operand == "java.lang.Throwable" {
			named++
		}
	}
	if !slices.Equal(got, want) || len(want) < 20 {
		t.Errorf("bytecodes\n%q, javap says\n%q", got, want)
	}
	if named != 4 { // two of the field
		t.Errorf("%d names of class, field and method, not 4", named)
	}
}

// objdumpLine is an instruction of objdump -d.
var objdumpLine = regexp.MustCompile(`(?m)^ *([0-9a-f]+):\t[0-9a-f ]+\t(.*)$`)

// checkCode compares the instructions with those of objdump, and their samples with those of the page.
func checkCode(t *testing.T, page *annotate.Page, c *annotate.Code) {
	t.Helper()
	var code []byte
	var self, total int64
	placed := 0
	for _, in := range c.Instructions {
		if int(in.Offset) != len(code) {
			t.Fatalf("an instruction at %#x, not at %#x", in.Offset, len(code))
		}
		b, err := hex.DecodeString(in.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		code = append(code, b...)
		self, total = self+in.Self, total+in.Total
		if in.Self > 0 {
			placed++
			if len(in.Place) == 0 || !strings.HasPrefix(in.Place[0], "HotLine.work") {
				t.Errorf("%#x %s has %d samples, and is of %q", in.Offset, in.Text, in.Self, in.Place)
			}
		}
	}
	if len(code) != c.Size || self != c.Self || total != c.Total || c.Self > page.Self {
		t.Errorf("%d of %d bytes; %d and %d samples, not %d and %d", len(code), c.Size, self, total, c.Self, c.Total)
	}
	file := filepath.Join(t.TempDir(), "code")
	if err := os.WriteFile(file, code, 0o600); err != nil {
		t.Fatal(err)
	}
	machine := []string{"-m", "i386:x86-64", "-M", "intel"}
	if runtime.GOARCH == "arm64" {
		machine = []string{"-m", "aarch64"}
	}
	out, err := exec.Command("objdump", append([]string{"-D", "-z", "-w", "-b", "binary", file}, machine...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	theirs := objdumpLine.FindAllStringSubmatch(string(out), -1)
	if len(theirs) != len(c.Instructions) || len(theirs) < 20 {
		t.Fatalf("%d instructions, objdump has %d", len(c.Instructions), len(theirs))
	}
	unknown := 0
	for i, in := range c.Instructions {
		at, _ := strconv.ParseUint(theirs[i][1], 16, 32)
		want, got := sameWords(theirs[i][2]), sameWords(in.Text)
		if strings.HasPrefix(in.Text, ".byte") {
			unknown++
		} else if uint32(at) != in.Offset || got != want {
			t.Errorf("%#x: %s (%s), objdump says %#x: %s (%s)", in.Offset, in.Text, got, at, theirs[i][2], want)
		}
	}
	t.Logf("%s, tier %d: %d instructions as objdump has them, %d not decoded, %d with samples", c.Compiler, c.Level,
		len(theirs)-unknown, unknown, placed)
}

// conditions are two spellings of the same.
var conditions = map[string]string{"nz": "ne", "z": "e", "nl": "ge", "nb": "ae", "nbe": "a", "nle": "g", "c": "b"}

var registers = regexp.MustCompile(`\b(r[a-ds0-9][a-z0-9]*|e[a-d]x|e[sd]i|e[bs]p|xmm\d+|ymm\d+|[wx]\d+)\b`)

// sameWords is an instruction's name and the registers in its operands, in one spelling of several.
func sameWords(text string) string {
	text, _, _ = strings.Cut(text, "#")
	text = strings.ReplaceAll(strings.TrimPrefix(text, "cs "), "data16 ", "")
	op, operands, _ := strings.Cut(strings.TrimSpace(text), " ")
	for _, prefix := range []string{"cmov", "set", "j"} {
		if condition, is := strings.CutPrefix(op, prefix); is && conditions[condition] != "" {
			op = prefix + conditions[condition]
		}
	}
	if op == "movabs" {
		op = "mov"
	}
	if op == "nop" || op == "xchg" && strings.Join(strings.Fields(operands), "") == "ax,ax" { // they do nothing
		return "nop"
	}
	return op + " " + strings.Join(registers.FindAllString(operands, -1), " ")
}

// checkFile compares the page of a file with a report of the file.
func checkFile(t *testing.T, jvm *jvmtest.JVM, hot int32, share float64) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "x.jfr")
	code, told := runGoprof(t, "record", "--pid", strconv.Itoa(jvm.PID), "-d", "2s", "-r", "1000", "-o", file)
	if code != 0 {
		t.Fatal(told)
	}
	page := annotated(t, "HotLine.work", file)
	checkHotLine(t, page, hot, share)
	out, err := exec.Command("goprof", "report", "--by", "line", "--json", "--top", "0", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	var report output.Report
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatal(err)
	}
	for _, l := range page.Methods[0].Lines {
		i := slices.IndexFunc(report.Rows, func(r output.ReportRow) bool {
			return r.Name == strings.TrimSuffix(fmt.Sprintf("truth.HotLine.work:%d", l.Line), ":0")
		})
		if i < 0 || report.Rows[i].Self != l.Self || report.Rows[i].Total != l.Total {
			t.Errorf("line %d: %+v, report --by line says %+v", l.Line, l, report.Rows)
		}
	}
	of := annotated(t, "HotLine.work", file, "--pid", strconv.Itoa(jvm.PID))
	if len(of.Methods) != 1 || of.Self != page.Self || of.Methods[0].Rows[1].Bytecode == "" || len(of.Notes) > 0 {
		t.Errorf("with the JVM: %d methods, %d samples, %+v, %q", len(of.Methods), of.Self, of.Methods[0].Rows[0], of.Notes)
	}
}
