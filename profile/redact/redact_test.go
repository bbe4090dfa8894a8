package redact

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"goprof/profile"
)

func redactor() *Redactor { return New(Default(), []byte("the key of these tests")) }

// TestReadable: text that the policy allows is not changed.
func TestReadable(t *testing.T) {
	r := redactor()
	for _, name := range []string{"java.lang.Thread.run", "java.util.concurrent.ThreadPoolExecutor$Worker.run",
		"org.springframework.web.servlet.DispatcherServlet.doDispatch", "com.sun.proxy.$Proxy12.invoke",
		"jdk.internal.misc.Unsafe.park", "kotlinx.coroutines.BuildersKt.launch"} {
		if got := r.Method(name); got != name {
			t.Errorf("Method(%q) = %q", name, got)
		}
	}
	for _, name := range []string{"main", "pool-1-thread-7", "http-nio-8080-exec-12", "GC Thread#0",
		"C2 CompilerThread0",
		"C2 CompilerThre", "ForkJoinPool.commonPool-worker-3", "Reference Handler", "nioEventLoopGroup-2-1",
		"VM Periodic Tas",
		"RMI TCP Connection(2)-idle", "Common-Cleaner", "G1 Refine#0", "VirtualThread-unparker", ""} {
		if got := r.ThreadName(name); got != name {
			t.Errorf("ThreadName(%q) = %q", name, got)
		}
	}
	for _, name := range []string{"[parked]", "[truncated: no unwind info]", "[pool-1-thread-7 tid=4711]", "call_stub",
		"[parked: java.lang.Object]", "[woken by]", "[woken by: timer (interrupt)]", "[not sampled]", "libc.so.6+0x12ab",
		"start_thread", "JavaThread::run",
		"[virtual #31]", "[http-nio-8080-exec-* tid=*]", "Interpreter", "[no unwind info: libc.so.6]"} {
		if got := r.Label(name); got != name {
			t.Errorf("Label(%q) = %q", name, got)
		}
	}
}

// TestShape: only the kind and the place of names stay.
func TestShape(t *testing.T) {
	r := redactor()
	for _, row := range []struct{ name, shape string }{
		{"com.acme.shop.Checkout.pay", "com.p.p.C.m"},
		{"com.acme.shop.Checkout$Cart.lambda$total$3", "com.p.p.C$C.lambda$m$3"},
		{"com.acme.Pay$$Lambda/0x00007f1234567890.run", "com.p.C$$Lambda/n.run"},
		{"com.acme.Pay$$EnhancerBySpringCGLIB$$0.run", "com.p.C$$EnhancerBySpringCGLIB$$0.run"},
		{"acme.<init>", "C.<init>"},
		{"org.apache.jsp.customers_jsp._jspService", "org.p.p.C.m"},
	} {
		if got := shapeOf(r.Method(row.name)); got != row.shape {
			t.Errorf("%s: %s, want %s", row.name, got, row.shape)
		}
	}
	for _, row := range []struct{ name, shape string }{
		{"checkout-worker-3", "t-worker-3"},
		{"call 4111-1111-1111-1111 now", "t n t"},
		{"bob@acme.com 1", "n 1"},
		{"10.20.30.40:9042", "n"},
		{"order-12345678", "t-n"},
	} {
		if got := shapeOf(r.ThreadName(row.name)); got != row.shape {
			t.Errorf("%s: %s, want %s", row.name, got, row.shape)
		}
	}
	for _, row := range []struct{ got, shape string }{
		{r.Class("[Lcom/acme/Shop;"), "[Lcom/p/C;"}, {r.Class("int[]"), "int[]"},
		{r.Descriptor("(Lcom/acme/Shop;ILjava/lang/String;)V"), "(Lcom/p/C;ILjava/lang/String;)V"},
		{r.Path("/home/alice/app/libacme.so"), "/f/L.so"}, {r.Path("/home/alice/jdk/lib/libjvm.so"), "/f/libjvm.so"},
		{r.Source("Checkout.java", false), "C.java"}, {r.Program("/srv/shop/app.jar --password=hunter2"), "/f/f.jar"},
	} {
		if shapeOf(row.got) != row.shape {
			t.Errorf("%s, want %s", row.got, row.shape)
		}
	}
}

// shapeOf replaces each pseudonym with its first letter.
func shapeOf(text string) string {
	r := redactor()
	return each(text, func(word string, _ int) string {
		if r.isPseudonym(word) {
			return word[:1]
		}
		return word
	})
}

// TestSameWordSamePseudonym: a word has one pseudonym in a class, a file and a text. With another key the pseudonym
// differs.
func TestSameWordSamePseudonym(t *testing.T) {
	r := redactor()
	class := r.Class("com.acme.Checkout")
	word := class[strings.LastIndexByte(class, '.')+2:]
	for _, text := range []string{r.Source("Checkout.java", false), r.Method("Checkout.pay"),
		r.Text("wait for Checkout here")} {
		if !strings.Contains(text, word) {
			t.Errorf("%q lacks %q", text, word)
		}
	}
	if New(Default(), []byte("another key")).Class("com.acme.Checkout") == class {
		t.Error("the key does not matter")
	}
}

// TestReversal: the pairs that Tell gets lead back to every word.
func TestReversal(t *testing.T) {
	r := redactor()
	words := map[string]string{}
	r.Tell(func(p, word string) { words[p] = word })
	const name = "com.acme.shop.Checkout$Cart.lambda$total$3"
	for range 2 {
		back := each(r.Method(name), func(word string, _ int) string {
			if w, ok := words[word]; ok {
				return w
			}
			return word
		})
		if back != name {
			t.Errorf("%q", back)
		}
	}
}

// TestOwnSentences: a sentence of triage stays a sentence.
func TestOwnSentences(t *testing.T) {
	r := redactor()
	got := r.Text("3 threads wait for a lock of java.util.concurrent.locks.ReentrantLock that " +
		"\"checkout-worker-3\" holds for 82 % of the time")
	if !strings.Contains(got, "java.util.concurrent.locks.ReentrantLock") || !strings.Contains(got,
		"threads wait for a lock of") ||
		strings.Contains(got, "checkout") || !strings.Contains(got, "82 % of the time") {
		t.Error(got)
	}
}

func TestPolicy(t *testing.T) {
	p, err := ParsePolicy(strings.NewReader("defaults off\n# a comment\nallow package com.acme.oss.*\nallow word " +
		"Checkout # fine\n" +
		"allow library libacme_*.so\ndeny package com.acme.oss.private\nkey case.key\n"))
	if err != nil {
		t.Fatal(err)
	}
	r := New(p, nil)
	if p.KeyFile != "case.key" || r.Method("com.acme.oss.A.b") != "com.acme.oss.A.b" ||
		r.Class("x.Checkout") == "x.Checkout" ||
		!strings.HasSuffix(r.Class("x.Checkout"), ".Checkout") || !r.library("/a/libacme_1.so") {
		t.Error(p)
	}
	for _, name := range []string{"java.lang.String", "com.acme.oss.private.A", "com.acme.ossx.A"} {
		if r.Class(name) == name {
			t.Errorf("%s stayed", name)
		}
	}
	for _, bad := range []string{"allow", "forbid package a", "allow package a/b", "allow library /a/b",
		"allow word x\ndefaults off", "defaults on"} {
		if _, err := ParsePolicy(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// secretLetters make words that are in no list: no pseudonym has two of these letters in a row, and no list has such a
// run.
const secretLetters = "QXKqxkäöüß漢字"

// TestNothingSurvives puts random names in all places of names. No four consecutive characters of a secret stay.
func TestNothingSurvives(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	r := redactor()
	letters := []rune(secretLetters)
	for range 1000 {
		var b strings.Builder
		for range 4 + rnd.IntN(12) {
			b.WriteRune(letters[rnd.IntN(len(letters))])
		}
		secret := b.String()
		for i, got := range everywhere(r, secret) {
			if part := survives(got, secret); part != "" {
				t.Fatalf("%d: %q of %q survives in %q", i, part, secret, got)
			}
		}
	}
}

// survives returns four consecutive characters of a secret that stayed.
func survives(got, secret string) string {
	all := []rune(strings.ToLower(secret))
	got = strings.ToLower(got)
	for i := 0; i+leastShared <= len(all); i++ {
		if part := string(all[i : i+leastShared]); strings.Contains(got, part) {
			return part
		}
	}
	return ""
}

// everywhere puts a word in each place of names.
func everywhere(r *Redactor, s string) []string {
	f := func(of profile.Func) string {
		g := r.Func(of)
		return g.Name + " " + g.Module + " " + g.File + " " + g.Build
	}
	m := r.Meta(profile.Meta{Host: s, MainClass: s + ".jar --x=" + s, JVM: s})
	return []string{r.Class(s), r.Class("com." + s + ".A$" + s + "$1"), r.Class("[L" + s + "/" + s + ";"),
		r.Method("a." + s + "." + s),
		r.Method(s + "(" + s + ")"), r.MethodOf(s, s), r.Package(s + "/" + s), r.Descriptor("(L" + s + ";" + s + ")V"),
		r.Method("java.lang.Object " + s), r.Source(s+".java", false), r.Source(s, false), r.Source("/"+s+"/"+s+".kt",
			true),
		r.ThreadName(s), r.ThreadName("pool-" + s + "-thread-1"), r.ThreadName(s + "7@" + s + ".com"),
		r.ThreadName("java.lang.Thread " + s),
		r.Path("/home/" + s + "/lib" + s + ".so"), r.Path(s), r.Path("/usr/lib/" + s), r.Text(s), r.Text("thread " +
			s + " in " + s + ".x." + s),
		r.Text("/" + s + "/a b/" + s + " http://" + s + "/" + s + "?" + s), r.Text("\"" + s + "\" <" + s + "@" + s +
			".de>"),
		r.Label(s), r.Label("a." + s + ".b_[j]"), r.Label("[" + s + "]"), r.Label("[parked: " + s + "]"),
		r.Label("[" + s + " tid=7]"),
		r.Label("[" + s + ": " + s), r.Label(s + "_[k]"), r.Label("[no unwind info: lib" + s + ".so]"),
		r.Label("libc.so.6" + s + "+0x1"),
		f(profile.Func{Name: s, Module: "/x/" + s + ".so", Build: s}), f(profile.Func{Name: s + "::" + s, File: s}),
		f(profile.Func{Name: "G1" + s + "::x(" + s + ")"}), f(profile.Func{Name: "[" + s, Module: s}),
		m.Host + m.MainClass + m.JVM, r.Version("17 " + s)}
}

// FuzzRedact: with any text around a secret, nothing panics, grows without bounds, or reveals the secret.
func FuzzRedact(f *testing.F) {
	for _, seed := range []string{"", "com.acme.Shop", "[[[L;", "[a tid=1]", "/a/b/../c d", "a@b.c", "(((((",
		"lambda$x$1", "\x00\xff",
		"0x0000", "[: ]", "java.", "java/lang/", "....", "[no unwind info: ", "_[j]"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		r := New(&Policy{}, nil)
		const secret = "qxzqqxzzxq"
		if strings.Contains(strings.ToLower(before+after), "qxz") || len(before)+len(after) > 1<<12 {
			return
		}
		for i, got := range append(everywhere(r, before+secret+after), everywhere(r, before)...) {
			if part := survives(got, secret); part != "" {
				t.Fatalf("%d: %q survives in %q", i, part, got)
			}
			if len(got) > 64*(len(before)+len(after)+64) {
				t.Fatalf("%d: %d bytes", i, len(got))
			}
		}
	})
}

// TestOwnWords: goprof's own words about a recording stay.
func TestOwnWords(t *testing.T) {
	r := redactor()
	words := []string{profile.ModeCPU, profile.ModeWall, profile.ModeOffCPU, profile.ModeTTSP, profile.EnginePtrace,
		profile.EnginePerf,
		"samples",
		"cpu time", "wall time", "G1", "Serial", "Parallel", "ZGC", "Shenandoah", "Epsilon", "CMS", "gc", "safepoint",
		"pause", "good", "fair",
		"poor", "library-replaced", "allocations", "cpu", "nanoseconds", "count", "bytes", "thread", "tid", "virtual",
		"state",
		"G1 Evacuation Pause", "interpreted", "c1", "c2", "inlined", "native-method", "stub", "native", "gap"}
	for why := range profile.NumReasons {
		words = append(words, why.String())
	}
	for _, id := range append(profile.FindingIDs, profile.CrashIDs...) {
		words = append(words, string(id))
	}
	words = append(words, profile.StateNames()...)
	for _, word := range words {
		if got := r.Text(word); got != word {
			t.Errorf("Text(%q) = %q", word, got)
		}
	}
}

// TestOwnFiles: the files in the commands that triage proposes keep their names.
func TestOwnFiles(t *testing.T) {
	r := redactor()
	for _, next := range []string{"goprof record --pid 1234 -d 30s -o gc.jfr && goprof report gc.jfr --by thread",
		"goprof record --pid 1234 -d 30s && goprof flame out.collapsed"} {
		if got := r.Text(next); got != next {
			t.Errorf("%q became %q", next, got)
		}
	}
}

// TestHeapHeld: no classes, fields, threads and methods of the program stay, but those of the JDK do.
func TestHeapHeld(t *testing.T) {
	link := profile.HeapLink{Kind: profile.LinkLoaded, Class: "acme.Vault", Field: "goldBars", Loader: "acme.VaultLoader"}
	h := &profile.HeapHeld{MainClass: "acme.Bank",
		Growth: &profile.HeapGrowth{Classes: []*profile.HeapGrower{{Name: "acme.Ingot", Loader: "acme.VaultLoader"}}},
		Leaks: []*profile.HeapLeak{{Path: []profile.HeapLink{link}, Classes: []string{"acme.Ingot"},
			Allocs: []profile.HeapAllocSite{{Class: "acme.Ingot", Stack: []string{"acme.Mint.strike"}}}}},
		Holders: []*profile.HeapHolders{{Class: "acme.Ingot", Rows: []*profile.HeapHolder{{Path: []profile.HeapLink{link,
			{Kind: profile.LinkField, Class: "java.util.ArrayList", Field: "elementData"},
			{Kind: profile.LinkThread, Thread: "acme-clerk-7"}}}}}}}
	redactor().HeapHeld(h)
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"acme", "Vault", "goldBars", "Ingot", "Mint", "strike", "clerk", "Bank"} {
		if strings.Contains(string(b), secret) {
			t.Errorf("%q is told: %s", secret, b)
		}
	}
	if !strings.Contains(string(b), "java.util.ArrayList") || !strings.Contains(string(b), "elementData") {
		t.Errorf("names of the JDK are hidden: %s", b)
	}
}
