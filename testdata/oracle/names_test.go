//go:build linux

package oracle

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"goprof/output"
	"goprof/profile"
	"goprof/profile/naming"
	"goprof/session"
	"goprof/testdata/jvmtest"
)

// byChance is what another run of the same program names otherwise.
var byChance = regexp.MustCompile(`[+/]0x[0-9a-f]+|\$\$Lambda\$[0-9]|Generated\w+Accessor[0-9]`)

// javaStacks are the Java frames of a program's threads that stand still: by thread, the frames from
// the top down.
func javaStacks(t *testing.T, jvm *jvmtest.JVM, raw, fold bool) map[string][]string {
	t.Helper()
	s, err := session.Attach(jvm.PID)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if raw {
		s.RawNames()
	}
	due := jvm.Command("threads")
	stacks := map[string][]string{}
	for tries := 0; len(stacks) < len(due) && tries < 50; tries++ { // a busy machine may not stop one in time
		threads, err := s.Dump(session.DumpOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var folder naming.Folder
		for i := range threads {
			if th := &threads[i]; th.Err == "" && slices.Contains(due, th.Name) {
				if fold {
					folder.Stack(&th.Stack)
				}
				stacks[th.Name] = javaNames(t, th)
			}
		}
	}
	if len(stacks) < len(due) {
		t.Fatalf("only %d of the threads %v", len(stacks), due)
	}
	return stacks
}

func javaNames(t *testing.T, th *profile.ThreadDump) (names []string) {
	t.Helper()
	if th.Stack.Truncated != profile.Whole {
		t.Errorf("%s: %v", th.Name, th.Stack.Truncated)
	}
	for _, f := range th.Stack.Frames {
		if f.Kind.Java() || naming.IsFold(f.Func.Name) {
			names = append(names, f.Func.Name)
		}
	}
	return names
}

// TestStableNames: what the JVM makes up is named alike in every run; without our names it is not.
func TestStableNames(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		var runs []map[string][]string
		for range 2 {
			jvm := jvmtest.Start(t, jdk, "truth.Plumbing")
			runs = append(runs, javaStacks(t, jvm, false, false))
			raw := javaStacks(t, jvm, true, false)
			sameButForChance(t, runs[len(runs)-1], raw)
			if jdk.Version >= 15 && !strings.Contains(strings.Join(raw["lambda"], " "), "truth.Plumbing$$Lambda+0x") &&
				!regexp.MustCompile(`truth\.Plumbing\$\$Lambda\$\d+\+0x`).MatchString(strings.Join(raw["lambda"], " ")) {
				t.Errorf("raw, the lambda is %q", raw["lambda"])
			}
			jvm.Quit()
		}
		for thread, frames := range runs[0] {
			if !slices.Equal(frames, runs[1][thread]) {
				t.Errorf("%s:\n%s\nand then\n%s", thread, strings.Join(frames, "\n"), strings.Join(runs[1][thread], "\n"))
			}
			for _, name := range frames {
				if byChance.MatchString(name) {
					t.Errorf("%s: %s", thread, name)
				}
			}
		}
		for thread, want := range map[string]string{
			"lambda": "truth.Plumbing.stand truth.Plumbing.lambda$beginLambda$* truth.Plumbing$$Lambda.run " +
				"truth.Plumbing.beginLambda",
			"reference": "truth.Plumbing.stand truth.Plumbing$$Lambda.run truth.Plumbing.beginReference",
			"proxy": "truth.Plumbing.stand truth.Plumbing.lambda$beginProxy$* truth.Plumbing$$Lambda.invoke *$Proxy0.step " +
				"truth.Plumbing.beginProxy",
		} {
			hasRun(t, thread, runs[0][thread], want)
		}
		if jdk.Version >= 15 {
			hasRun(t, "hidden-class", runs[0]["hidden-class"],
				"truth.Plumbing.stand truth.HiddenStep.run truth.Plumbing.beginHiddenClass")
		}
	})
}

// sameButForChance: our names differ from the JVM's in what is by chance, and in nothing else.
func sameButForChance(t *testing.T, ours, raw map[string][]string) {
	t.Helper()
	chance := regexp.MustCompile(`\+0x[0-9a-f]+|(\$\$Lambda)\$[0-9]+|(Generated\w+Accessor)[0-9]+`)
	for thread, frames := range raw {
		for i, name := range frames {
			want := chance.ReplaceAllString(chance.ReplaceAllString(name, "$1$2"), "$1$2")
			if i >= len(ours[thread]) || ours[thread][i] != want {
				t.Errorf("%s: frame %d is %s to the JVM; ours are %q", thread, i, name, ours[thread])
				break
			}
		}
	}
}

// hasRun: the frames are one after the other on the stack; a "*" is what compilers and JDKs do as they like.
func hasRun(t *testing.T, thread string, frames []string, want string) {
	t.Helper()
	text := regexp.QuoteMeta(strings.ReplaceAll(want, " ", "\n"))
	run := regexp.MustCompile(`(?m)^` + strings.ReplaceAll(text, `\*`, `[^\n]*`) + `$`)
	if all := strings.ReplaceAll(strings.Join(frames, "\n"), " ", "_"); !run.MatchString(all) {
		t.Errorf("%s: no %q in\n%s", thread, want, all)
	}
}

// TestHideInternal: between what a program calls and what is called stands one frame.
func TestHideInternal(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.Plumbing")
		stacks := javaStacks(t, jvm, false, true)
		for thread, want := range map[string]string{
			"lambda":           "truth.Plumbing.lambda$beginLambda$* [lambda] truth.Plumbing.beginLambda",
			"reference":        "truth.Plumbing.stand [lambda] truth.Plumbing.beginReference",
			"reflection":       "truth.Plumbing.stand [reflection] truth.Plumbing.beginReflection",
			"first-reflection": "truth.Plumbing.stand [reflection] truth.Plumbing.beginFirstReflection",
			"constructor":      "truth.Plumbing$Stands.<init> [reflection] truth.Plumbing.beginConstructor",
			"handle":           "truth.Plumbing.stand [method_handles] truth.Plumbing.beginHandle",
			"proxy":            "truth.Plumbing.lambda$beginProxy$* [lambda] *$Proxy0.step truth.Plumbing.beginProxy",
			"stream":           "truth.Plumbing.lambda$beginStream$* [stream] truth.Plumbing.beginStream",
		} {
			hasRun(t, thread, stacks[thread], want)
		}
	})
}

// TestRecordShape: a recording with pools as threads and folded frames is what comes of a recording without
// if the shape is given to it later.
func TestRecordShape(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		// Inlined into its caller, and in a loop without a safepoint, it would have no debug information of its own.
		jvm := jvmtest.Start(t, jdk, "truth.Plumbing", "-XX:CompileCommand=dontinline,truth/Plumbing.turn", "--", "spin")
		s, err := session.Attach(jvm.PID)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for _, shape := range []output.Shape{{}, {GroupThreads: true, HideInternal: true}} {
			tree := recordedTree(t, s, session.RecordOptions{Threads: true, GroupThreads: shape.GroupThreads,
				HideInternal: shape.HideInternal})
			tree = tree.Shaped(output.Shape{GroupThreads: true, HideInternal: true})
			checkShape(t, tree)
		}
	})
}

func recordedTree(t *testing.T, s *session.Session, opt session.RecordOptions) *output.Tree {
	t.Helper()
	p, sum := record(t, s, untilEnough(t, &opt, 0, 1000), opt)
	var text strings.Builder
	if err := output.Collapsed(&text, p); err != nil {
		t.Fatal(err)
	}
	tree, err := output.ParseCollapsed(strings.NewReader(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	if tree.Total != sum.Samples {
		t.Errorf("%d samples in the file, %d taken", tree.Total, sum.Samples)
	}
	return tree
}

// checkShape: the pool is one thread, and its turns are called by reflection, which is one frame.
func checkShape(t *testing.T, tree *output.Tree) {
	t.Helper()
	threads, err := output.NewReport(tree, "thread")
	if err != nil {
		t.Fatal(err)
	}
	pools := 0
	for i := range threads.Rows {
		if row := &threads.Rows[i]; strings.HasPrefix(row.Name, "[pool-1-thread-") {
			if pools++; row.Name != "[pool-1-thread-* tid=*]" {
				t.Errorf("%d of %d samples are of %s", row.Total, tree.Total, row.Name)
			}
		}
	}
	if pools != 1 {
		t.Errorf("the pool has %d rows", pools)
	}
	turns := 0
	for _, node := range tree.Nodes {
		if tree.Labels[node.Name].Text != "truth.Plumbing.turn" {
			continue
		}
		turns++
		above := tree.Nodes[node.Parent]
		caller := tree.Labels[above.Name].Text
		if caller != "[reflection]" || !strings.HasPrefix(tree.Labels[tree.Nodes[above.Parent].Name].Text,
			"truth.Plumbing.lambda$") {
			t.Errorf("turn is called by %s of %s", caller, tree.Labels[tree.Nodes[above.Parent].Name].Text)
		}
	}
	if turns == 0 {
		methods, _ := output.NewReport(tree, "method")
		methods.Keep(20)
		t.Errorf("no turn was seen: %+v", methods.Rows)
	}
}

// ownProof is the name of a thread of truth.Renamed.
var ownProof = regexp.MustCompile(`^renamed-(\d+)-is-a-long-name-(\d+)$`)

// TestNamesWhileObjectsMove: threads rename themselves while the collector moves all it can. A name is
// what Java says, or the short one of the kernel; it is never what lay where a name had been.
func TestNamesWhileObjectsMove(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, collector := range []string{"-XX:+UseZGC", "-XX:+UseShenandoahGC", "-XX:+UseG1GC",
			"-XX:+UseSerialGC", "-XX:+UseParallelGC"} {
			t.Run(collector, func(t *testing.T) {
				flags := []string{"-Xmx64m", "-XX:+UnlockExperimentalVMOptions", collector}
				if why := refuses(jdk, flags); why != "" {
					t.Skip(why)
				}
				jvm := jvmtest.Start(t, jdk, "truth.Renamed", flags...)
				s := attach(t, jvm.PID)
				judgeNames(t, s)
			})
		}
	})
}

func judgeNames(t *testing.T, s *session.Session) {
	t.Helper()
	full, short := 0, 0
	for n := 0; n < 60 || full == 0 && n < 6000; n++ { // a machine that has no CPU for it collects without end
		threads, err := s.Threads()
		if err != nil {
			t.Fatal(err)
		}
		for _, th := range threads {
			// Of a long name the kernel has the beginning; from JDK 26 on 7 characters and the last 6.
			if th.Java.Addr == 0 || !strings.HasPrefix(th.Kernel.Comm, "renamed") {
				continue
			}
			switch m := ownProof.FindStringSubmatch(th.Name); {
			case th.Name == th.Kernel.Comm:
				short++
			case m == nil || !isProof(m[1], m[2]):
				t.Errorf("a thread is called %q", th.Name)
			default:
				full++
			}
		}
	}
	t.Logf("%d names, %d short ones of the kernel", full, short)
	if full == 0 {
		t.Error("no name was read")
	}
}

func isProof(number, proof string) bool {
	n, err := strconv.ParseInt(number, 10, 64)
	return err == nil && proof == strconv.FormatInt(31*n, 10)
}

// TestLateNames: a thread that is sampled before its name is known has one name in a recording nevertheless.
func TestLateNames(t *testing.T) {
	t.Parallel()
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		jvm := jvmtest.Start(t, jdk, "truth.LongNames")
		s := attach(t, jvm.PID)
		// Each thread lives for 60 ms, and half of all samples at least are theirs: there are more than five.
		again(t, func(t testing.TB) { lateNames(t, s) })
	})
}

func lateNames(t testing.TB, s *session.Session) {
	opt := session.RecordOptions{Interval: time.Millisecond, Threads: true}
	p, _, err := s.Record(untilEnough(t, &opt, time.Second, 800), opt)
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{} // by number
	long := 0
	p.Each(func(frames []profile.Frame, _ int64) {
		label := frames[0].Func.Name
		at := strings.LastIndex(label, " tid=")
		if at < 0 {
			return // the account's own
		}
		if before, ok := labels[label[at:]]; ok && before != label {
			fact(t).Errorf("%s was %s, too", label, before)
		} else if !ok && strings.HasPrefix(label, "[a-thread-of-long-name-") {
			long++
		}
		labels[label[at:]] = label
	})
	if long < 5 {
		t.Errorf("only %d threads with long names in %v", long, labels)
	}
}
