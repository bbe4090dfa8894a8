package redact

import (
	"strings"
	"testing"

	"goprof/profile"
)

// TestDumpHasNoNames: the state of a compiler thread contains the method that it compiles.
func TestDumpHasNoNames(t *testing.T) {
	r := redactor()
	d := &profile.Dump{Threads: []profile.ThreadDump{{State: "compiling C2 com.qxzz.Qxzz.qxzzPay"}},
		Virtual: &profile.VirtualCensus{Unread: map[string]int{"qxzz cannot be read": 2}}}
	before := d.Virtual
	r.Dump(d)
	if got := d.Threads[0].State; !strings.HasPrefix(got, "compiling C2 ") || strings.Contains(strings.ToLower(got),
		"qxzz") {
		t.Errorf("%q", got)
	}
	for why, n := range d.Virtual.Unread {
		if n != 2 || strings.Contains(why, "qxzz") || !strings.Contains(why, "cannot be read") {
			t.Errorf("%q %d", why, n)
		}
	}
	if before.Unread["qxzz cannot be read"] != 2 {
		t.Error("the dump's own map was changed")
	}
	for _, state := range []string{"NEW", "RUNNABLE", "SLEEPING", "WAITING", "TIMED_WAITING", "PARKED",
		"TIMED_PARKED",
		"BLOCKED", "TERMINATED", "in native",
		"in Java", "in VM", "in VM transition", "blocked", "compiling", "sleeping", "running",
		"waiting", "starting", "parked", "mounted", "stopped", "disk sleep", "idle", "yielding", "pinned",
		"new", "started", "terminated", "timed-pinned", "timed-waiting", "unblocked", "unparked", "traced", "ended"} {
		if got := r.threadState(state); got != state {
			t.Errorf("%q became %q", state, got)
		}
	}
}

// TestLabelsOfThreads: the name of a thread may equal a part of the text that goprof appends to it.
func TestLabelsOfThreads(t *testing.T) {
	r := redactor()
	for label, shape := range map[string]string{"[qxzz tid=4711]": "[t tid=4711]", "[id tid=4711]": "[t tid=4711]",
		"[64711 tid=4647110]": "[n tid=4647110]", "[rtual virtual #31]": "[t virtual #31]"} {
		if got := shapeOf(r.Label(label)); got != shape {
			t.Errorf("%s: %s, want %s", label, got, shape)
		}
	}
}

// TestThreadsLikePackages: a thread's name may begin like an open package. If it is not a class, it is arbitrary text.
func TestThreadsLikePackages(t *testing.T) {
	r := redactor()
	for name, shape := range map[string]string{"kotlinx.coroutines.DefaultExecutor": "kotlinx.coroutines.DefaultExecutor",
		"play.qxzz-7": "t.t-7", "java.qxzz": "t.t", "akka.actor.default-dispatcher-5": "akka.actor.default-dispatcher-5"} {
		if got := shapeOf(r.ThreadName(name)); got != shape {
			t.Errorf("%s: %s, want %s", name, got, shape)
		}
	}
}

// TestJavaInLibraries: other tools place Java code in the program's own file, or in libjvm.so.
func TestJavaInLibraries(t *testing.T) {
	r := redactor()
	for name, shape := range map[string]string{"com.qxzz.Qxzz.pay": "com.p.C.m", "JavaMain": "JavaMain",
		"java.lang.Thread.run": "java.lang.Thread.run", "foo.part.0": "foo.part.0",
		"memcpy@@GLIBC_2.14":    "memcpy@@GLIBC_2.14",
		"f.constprop.0.isra.12": "f.constprop.0.isra.12", "f.part.0.cold": "f.part.0.cold", "f.cold": "f.cold",
		"Qxzz.clone": "C.m", "Qxzz.cold": "C.m", "G1::x(a.b)": "G1::x(a.b)"} {
		if got := shapeOf(r.Func(profile.Func{Name: name, Module: "/usr/bin/java"}).Name); got != shape {
			t.Errorf("%s: %s, want %s", name, got, shape)
		}
	}
}

// TestFigures: the numbers in a sentence stay. Numbers that belong to a name do not.
func TestFigures(t *testing.T) {
	r := redactor()
	for text, shape := range map[string]string{
		"12345 of 2345678 samples of \"order-12345678\"": "12345 of 2345678 samples of \"w-n\"",
		"thread \"87654321\" tid=1234567":                "thread \"n\" tid=1234567", "pool-1-thread-7": "pool-1-thread-7",
		"up to 123456789 ns, 25 %": "up to 123456789 ns, 25 %"} {
		if got := shapeOf(r.Text(text)); got != shape {
			t.Errorf("%s: %s, want %s", text, got, shape)
		}
	}
}

// TestVersions: the numbers of a version stay, with the letters that releases have.
func TestVersions(t *testing.T) {
	r := redactor()
	for text, shape := range map[string]string{
		"OpenJDK 64-Bit Server VM (25.452-b09)": "OpenJDK 64-Bit Server VM (25.452-b09)",
		"1.8.0_412-8u412-ga-1~deb11u1-b08":      "1.8.0_412-8u412-ga-1~deb11u1-b08",
		"17.0.15+6-Debian-1deb12u1":             "17.0.15+6-Debian-1deb12u1", "25+36-LTS": "25+36-LTS",
		"21.0.3+9-Ubuntu-1ubuntu122.04.1": "21.0.3+9-Ubuntu-1ubuntu122.04.1",
		"17-internal+0-adhoc.qxzz42.jdk":  "17-internal+0-adhoc.w.jdk", "1.2-q1x2z3z4": "1.2-w", "3.1-qxz7": "3.1-w"} {
		if got := shapeOf(r.Version(text)); got != shape {
			t.Errorf("%s: %s, want %s", text, got, shape)
		}
	}
}

// TestCompiledForUsers: some open packages contain names of an application.
func TestCompiledForUsers(t *testing.T) {
	r := redactor()
	for _, name := range []string{"jdk.nashorn.internal.scripts.Script$qxzz.qxzz", "org.mockito.codegen.Qxzz$1.a",
		"org.jboss.weldx.Qxzz.a", "org.python.pycode._pyx0.qxzz$1"} {
		if got := r.Method(name); strings.Contains(strings.ToLower(got), "qxzz") {
			t.Errorf("%s: %s", name, got)
		}
	}
}
