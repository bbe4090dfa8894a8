package output

import (
	"slices"
	"strings"
	"testing"

	"goprof/profile"
)

// lines returns the stacks of a tree, sorted.
func lines(t *Tree) (all []string) {
	for n, node := range t.Nodes {
		if node.Self == 0 {
			continue
		}
		var path []string
		for at := int32(n); at != 0; at = t.Nodes[at].Parent {
			path = append(path, t.Labels[t.Nodes[at].Name].Text)
		}
		slices.Reverse(path)
		all = append(all, strings.Join(path, ";")+" "+Percent(node.Self, 100))
	}
	slices.Sort(all)
	return all
}

const shapeFile = `[pool-1-thread-1 tid=7];P.run_[0];java.lang.reflect.Method.invoke_[i];jdk.internal.reflect.GeneratedMethodAccessor.invoke_[j];P.work_[j] 3
[pool-1-thread-2 tid=8];P.run_[0];java.lang.reflect.Method.invoke_[0];sun.reflect.NativeMethodAccessorImpl.invoke0_[j];JVM_InvokeMethod;call_stub;P.work_[j] 5
[pool-1-thread-2 tid=8];P.run_[0];java.lang.reflect.Method.invoke_[0];sun.reflect.NativeMethodAccessorImpl.invoke0_[j];JVM_InvokeMethod;load 2
[pool-1-thread-2 tid=8];P.run_[0];java.lang.reflect.Method.invoke_[0] 1
[main tid=1];[truncated: bad method];P$$Lambda.run_[0];P.lambda$main$0_[0] 4
`

func TestShaped(t *testing.T) {
	tree, err := ParseCollapsed(strings.NewReader(shapeFile))
	if err != nil {
		t.Fatal(err)
	}
	tree.Weight = profile.CPUTime
	for _, c := range []struct {
		shape Shape
		want  []string
	}{
		{Shape{HideInternal: true}, []string{
			"[main tid=1];[truncated: bad method];[lambda];P.lambda$main$0 4.0%",
			"[pool-1-thread-1 tid=7];P.run;[reflection];P.work 3.0%",
			"[pool-1-thread-2 tid=8];P.run;[reflection];JVM_InvokeMethod;load 2.0%",
			"[pool-1-thread-2 tid=8];P.run;[reflection];P.work 5.0%",
			"[pool-1-thread-2 tid=8];P.run;java.lang.reflect.Method.invoke 1.0%",
		}},
		{Shape{HideInternal: true, GroupThreads: true}, []string{
			"[main tid=*];[truncated: bad method];[lambda];P.lambda$main$0 4.0%",
			"[pool-1-thread-* tid=*];P.run;[reflection];JVM_InvokeMethod;load 2.0%",
			"[pool-1-thread-* tid=*];P.run;[reflection];P.work 8.0%",
			"[pool-1-thread-* tid=*];P.run;java.lang.reflect.Method.invoke 1.0%",
		}},
	} {
		got := tree.Shaped(c.shape)
		if all := lines(got); !slices.Equal(all, c.want) {
			t.Errorf("%+v:\n%s\nnot\n%s", c.shape, strings.Join(all, "\n"), strings.Join(c.want, "\n"))
		}
		if got.Total != tree.Total || got.Weight != tree.Weight || got.Stacks != len(c.want) {
			t.Errorf("%+v: %d samples, %d stacks", c.shape, got.Total, got.Stacks)
		}
		sameSelf(t, tree, got)
		for i := 1; i < len(got.Nodes); i++ {
			if int(got.Nodes[i].Parent) >= i {
				t.Fatalf("node %d stands before its parent", i)
			}
		}
	}
	for _, c := range []struct {
		shape Shape
		want  []string
	}{
		{Shape{MergeKinds: true}, []string{
			"[main tid=1];[truncated: bad method];P$$Lambda.run;P.lambda$main$0 4.0%",
			"[pool-1-thread-1 tid=7];P.run;java.lang.reflect.Method.invoke;" +
				"jdk.internal.reflect.GeneratedMethodAccessor.invoke;P.work 3.0%",
			"[pool-1-thread-2 tid=8];P.run;java.lang.reflect.Method.invoke 1.0%",
			"[pool-1-thread-2 tid=8];P.run;java.lang.reflect.Method.invoke;" +
				"sun.reflect.NativeMethodAccessorImpl.invoke0;JVM_InvokeMethod;call_stub;P.work 5.0%",
			"[pool-1-thread-2 tid=8];P.run;java.lang.reflect.Method.invoke;" +
				"sun.reflect.NativeMethodAccessorImpl.invoke0;JVM_InvokeMethod;load 2.0%",
		}},
	} {
		if all := lines(tree.Shaped(c.shape)); !slices.Equal(all, c.want) {
			t.Errorf("%+v:\n%s\nnot\n%s", c.shape, strings.Join(all, "\n"), strings.Join(c.want, "\n"))
		}
	}
	if same := tree.Shaped(Shape{}); same != tree {
		t.Error("no shape makes another tree")
	}
}

// sameSelf checks that merging frames does not move samples to other methods or kinds of code.
func sameSelf(t *testing.T, before, after *Tree) {
	t.Helper()
	// By class or package, a sample of native code would count for the topmost Java frame that is left.
	for _, by := range []string{"method", "kind"} {
		self := map[string]int64{}
		for sign, tree := range map[int64]*Tree{1: before, -1: after} {
			r, err := NewReport(tree, by)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range r.Rows {
				self[row.Name] += sign * row.Self
			}
		}
		for name, n := range self {
			if n != 0 {
				t.Errorf("by %s: self of %s differs by %d", by, name, n)
			}
		}
	}
}

// TestFoldsInAFile: record --hide-internal writes folded frames. They are read as folded frames.
func TestFoldsInAFile(t *testing.T) {
	label := Label(&profile.Func{Name: "[method handles]"}, profile.Gap)
	if name := ParseLabel(label); name.Kind != LabelFolded || name.Text != "[method handles]" {
		t.Errorf("%q is read as %+v", label, name)
	}
	if name := ParseLabel("[method handles of mine]"); name.Kind == LabelFolded {
		t.Errorf("%+v is a fold", name)
	}
}

// TestShapedEntry: the frames with which a thread begins become one frame. So do the frames in which it waits. The
// state stays the leaf.
func TestShapedEntry(t *testing.T) {
	const file = `[main tid=1];__clone3;start_thread;ThreadJavaMain;JavaMain;jni_CallStaticVoidMethod;JavaCalls::call_helper;call_stub;P.main_[0];jdk.internal.misc.Unsafe.park_[0];Unsafe_Park;Parker::park;pthread_cond_wait;[parked] 3
__clone3;start_thread;libshop.so+0x1f;JavaCalls::call_helper;call_stub;P.back_[0] 2
[truncated: bad method];JavaCalls::call_helper;call_stub;P.cut_[0] 1
`
	tree, err := ParseCollapsed(strings.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"[main tid=1];[thread entry];P.main;jdk.internal.misc.Unsafe.park;[futex wait];[parked] 3.0%",
		"[thread entry];libshop.so+0x1f;JavaCalls::call_helper;call_stub;P.back 2.0%",
		"[truncated: bad method];JavaCalls::call_helper;call_stub;P.cut 1.0%"}
	got := lines(tree.Shaped(Shape{HideInternal: true}))
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
	var b strings.Builder
	for _, line := range want {
		line, _, _ = strings.Cut(line, "%")
		b.WriteString(strings.TrimSuffix(line, ".0") + "\n")
	}
	again, err := ParseCollapsed(strings.NewReader(b.String()))
	if err != nil || !slices.Equal(lines(again.Shaped(Shape{HideInternal: true})), want) {
		t.Errorf("what is folded is not folded again: %v", err)
	}
}

// TestDrawn: in a picture a method occurs once under its caller, with the kind of most of its samples. One frame
// replaces those with which its thread began.
func TestDrawn(t *testing.T) {
	tree, err := ParseCollapsed(strings.NewReader(`[main tid=1];__clone3;start_thread;JavaMain;call_stub;P.main_[0];P.work_[0] 10
[main tid=1];__clone3;start_thread;JavaMain;call_stub;P.main_[0];P.work_[1] 30
[main tid=1];__clone3;start_thread;JavaMain;call_stub;P.main_[0];P.work_[j];P.leaf_[i] 60
[main tid=1];__clone3;start_thread;JavaMain;call_stub;P.main_[j];P.work_[j] 5
[C2 tid=2];__clone3;start_thread;JavaThread::run;CompileBroker::compiler_thread_loop;C2Compiler::compile_method;compile 3
[GC tid=3];__clone3;start_thread;Thread::call_run;WorkerThread::run;G1EvacuateRegionsTask::work 2
[native tid=4];__clone3;start_thread;serve 1
`))
	if err != nil {
		t.Fatal(err)
	}
	drawn := tree.Shaped(Shape{}.Drawn())
	want := []string{
		"[C2 tid=2];[C2 compiler];CompileBroker::compiler_thread_loop;C2Compiler::compile_method;compile 3.0%",
		"[GC tid=3];[GC worker];WorkerThread::run;G1EvacuateRegionsTask::work 2.0%",
		"[main tid=1];[thread entry];P.main;P.work 45.0%",
		"[main tid=1];[thread entry];P.main;P.work;P.leaf 60.0%",
		"[native tid=4];[thread entry];serve 1.0%",
	}
	if all := lines(drawn); !slices.Equal(all, want) || drawn.Total != tree.Total || drawn.Stacks != 5 {
		t.Errorf("%d samples, %d stacks:\n%s", drawn.Total, drawn.Stacks, strings.Join(all, "\n"))
	}
	split := map[string]KindParts{}
	for node, parts := range drawn.Split {
		split[drawn.Labels[drawn.Nodes[node].Name].Text] = parts
	}
	if len(split) != 2 || split["P.work"] != (KindParts{65, 30, 10, 0}) || split["P.main"] != (KindParts{5, 0, 100, 0}) {
		t.Errorf("split: %v", split)
	}
	kinds := map[string]LabelKind{"P.main": LabelInterpreted, "P.work": LabelCompiled, "P.leaf": LabelInlined}
	for _, n := range drawn.Nodes[1:] {
		l := drawn.Labels[n.Name]
		if kind, ok := kinds[l.Text]; ok && l.Kind != kind {
			t.Errorf("%s is %v", l.Text, l.Kind)
		}
	}
}

// TestDrawnWaiting: in a picture, the state is above the frame that its time counts for. In the tree with all frames,
// it is above the last frame.
func TestDrawnWaiting(t *testing.T) {
	drawn, whole := parseTree(t, pooled).Drawn(Shape{}.Drawn())
	want := []string{
		"[VM tid=3];[JVM];VMThread::run;[in VM] 8.0%",
		"[java tid=4];__clone3;[in native] 2.0%",
		"[main tid=2];a.b.Main.main;[sleeping] 20.0%",
		"[main tid=2];a.b.Main.main;java.io.FileInputStream.read;read;[running] 10.0%",
		"[pool-1 tid=1];[thread entry];java.lang.Thread.run;a.Pool.take;[parked: a.Lock] 60.0%",
	}
	if got := lines(drawn); !slices.Equal(got, want) {
		t.Errorf("%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(whole.Nodes) <= len(drawn.Nodes)+10 {
		t.Errorf("with all frames %d nodes, drawn %d", len(whole.Nodes), len(drawn.Nodes))
	}
	if _, whole := parseTree(t, "a.B.c_[j] 1\n").Drawn(Shape{}.Drawn()); whole != nil {
		t.Error("nothing is hidden, and there is another tree with all frames")
	}
}

// TestShapedGuesses: guesses stay with their leaves.
func TestShapedGuesses(t *testing.T) {
	tree := parseTree(t, "a.B.c_[j];a.B.d_[i] 10\na.B.c_[1];a.B.d_[1] 5\n")
	tree.Guessed = map[int32]int64{2: 7}
	got := tree.Shaped(Shape{}.Drawn())
	if len(got.Nodes) != 3 || got.Guessed[2] != 7 || len(got.Guessed) != 1 {
		t.Errorf("%d nodes, guesses %v", len(got.Nodes), got.Guessed)
	}
}
