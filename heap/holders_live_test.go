//go:build linux

package heap

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"goprof/heap/heapdump"
	"goprof/profile"
	"goprof/profile/naming"
	"goprof/testdata/hprofread"
	"goprof/testdata/jvmtest"
	"goprof/vmstructs"
)

const order = "truth.HeapLeaks$Order"

// endings are the last links of the ways of a leak, by the command that begins the leak.
var endings = map[string][]string{
	"cache":    {"java.util.concurrent.ConcurrentHashMap$Node.val", "static truth.HeapLeaks.CACHE"},
	"listener": {"truth.HeapLeaks$Registry.listeners", "static truth.HeapLeaks$Registry.ONLY"},
	"local":    {"java.lang.ThreadLocal$ThreadLocalMap$Entry.value", "java.lang.Thread.threadLocals", "thread worker-*"},
	"loader":   {"loader truth.HeapLeaks$Plugin.DATA", "static truth.HeapLeaks.DRIVERS"},
}

// goes reports whether a way has these links in this order, and ends with the last of them.
func goes(path []profile.HeapLink, by []string) bool {
	for i, l := range path {
		text := strings.TrimSuffix(l.Class+"."+l.Field, ".")
		switch l.Kind {
		case profile.LinkStatic, profile.LinkLoaded:
			text = l.Kind + " " + text
		case profile.LinkThread:
			text = l.Kind + " " + l.Thread
		}
		if text == by[0] {
			if by = by[1:]; len(by) == 0 {
				return i == len(path)-1
			}
		}
	}
	return false
}

// TestHolders: in a JVM that stands still, the shares of the holders of a class's objects agree with a heap dump, and
// each reference on a way is in the dump. The ways of all leaks of the program lead to their roots.
func TestHolders(t *testing.T) {
	some := []string{"-XX:+UseG1GC", "-XX:+UseSerialGC", "-XX:+UseParallelGC -XX:-UseCompressedOops",
		"-XX:+UseConcMarkSweepGC", "-XX:+UseZGC"}
	if os.Getenv("GOPROF_JDKS") == "" {
		some = some[:1]
	}
	for _, flags := range some {
		t.Run(strings.Fields(flags)[0][5:], func(t *testing.T) {
			jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
				if strings.Contains(flags, "MarkSweep") && jdk.Version > 13 {
					t.Skip("it has no CMS")
				} else if strings.Contains(flags, "ZGC") && jdk.Version < 25 {
					t.Skip("tried with 25 alone")
				}
				jvm := jvmtest.Start(t, jdk, "truth.HeapLeaks", truthFlags(flags, "")...)
				r, err := openLive(t, jvm)
				if err != nil {
					t.Fatal(err)
				}
				for what := range endings {
					jvm.Command(what + " 1000")
				}
				time.Sleep(time.Second)
				jvm.Command("stop")
				jvm.Command("gc")
				stopForGood(t, jvm)
				h, err := r.Holders(Options{Seed: 1, Time: jvmtest.Slow(time.Minute)}, []string{order, "byte[]"}, nil)
				if err != nil {
					t.Fatal(err)
				}
				for what, by := range endings {
					if !slices.ContainsFunc(h.Holders[1].Rows, func(row *profile.HeapHolder) bool { return goes(row.Path, by) }) {
						t.Errorf("%s: no way goes by %q", what, by)
					}
				}
				var dump bytes.Buffer
				if _, err := heapdump.Write(&dump, openVM(t, jvm), heapdump.Options{}); err != nil {
					t.Fatal(err)
				}
				compareHolders(t, h.Holders[0], hprofread.Parse(dump.Bytes()))
			})
		})
	}
}

// keptBy has the roots of the objects that the command "keep" makes: 10 orders each time, divided among these roots.
var keptBy = map[string]float64{"CACHE": 6, "KEPT": 3, "CHAIN": 1}

// TestHoldersOfPart searches only a part of the heap. Each reported share is at most the true share, which is at most
// the reported maximum. The result reports what was not searched. If everything is searched, the shares are right.
func TestHoldersOfPart(t *testing.T) {
	some := []string{"-XX:+UseSerialGC"}
	if os.Getenv("GOPROF_JDKS") != "" {
		some = append(some, "-XX:+UseG1GC", "-XX:+UseParallelGC", "-XX:+UseZGC")
	}
	const megabytes = 420
	for _, flags := range some {
		t.Run(flags[5:], func(t *testing.T) {
			jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
				if jdk.Version < 15 && flags == "-XX:+UseZGC" {
					t.Skipf("%v has no ZGC, or only as an experiment", jdk)
				}
				jvm := jvmtest.Start(t, jdk, "truth.HeapLeaks", "-Xms1g", "-Xmx1g", flags, "--")
				r, err := openLive(t, jvm)
				if err != nil {
					t.Fatal(err)
				}
				jvm.Command("keep " + strconv.Itoa(megabytes))
				jvm.Command("gc")
				stopForGood(t, jvm)
				for _, read := range []uint64{60, 200, 0} { // megabytes; 0: all
					opt := Options{Seed: read, Bytes: read << 20, Time: jvmtest.Slow(time.Minute), All: read == 0}
					h, err := r.Holders(opt, []string{order}, nil)
					if err != nil {
						t.Fatal(err)
					}
					checkKept(t, h, opt.All, megabytes*1000)
				}
			})
		})
	}
}

// checkKept compares the shares of the roots with what the program keeps. CACHE and other roots have some orders more.
func checkKept(t *testing.T, h *profile.HeapHeld, all bool, kept float64) {
	t.Helper()
	found, unknown, sum := map[string]*profile.HeapHolder{}, 0.0, h.Holders[0].Rest
	for _, row := range h.Holders[0].Rows {
		if sum += row.Share; row.Missing != "" {
			unknown += row.Share
			continue
		}
		root := row.Path[len(row.Path)-1].Field
		if found[root] == nil {
			found[root] = &profile.HeapHolder{}
		}
		f := found[root]
		f.Share, f.Error, f.Most = f.Share+row.Share, math.Hypot(f.Error, row.Error), f.Most+row.Most
	}
	t.Logf("%.3f looked through, %.3f not known", h.Searched, unknown)
	if math.Abs(sum-1) > 1e-6 || all != (h.Searched == 1) || !all && (unknown == 0 || len(h.Notes) == 0) {
		t.Errorf("the shares are %f in sum; %f was looked through, %f is not known: %q", sum, h.Searched, unknown, h.Notes)
	}
	for root, tenths := range keptBy {
		f := found[root]
		if f == nil {
			t.Errorf("%s is missing", root)
			continue
		}
		want := tenths / 10 * kept
		if root == "CACHE" {
			want += 3000
		}
		want /= kept + 9000
		t.Logf("%s: %.3f +- %.3f, at most %.3f; %.3f is true", root, f.Share, f.Error, f.Most, want)
		switch lost := 2 * f.Error; {
		case want < f.Share-lost, !all && want > f.Most+lost, all && want > f.Share+lost:
			t.Errorf("%s holds %.3f +- %.3f, at most %.3f: %.3f is true", root, f.Share, f.Error, f.Most, want)
		}
	}
}

// stopForGood stops a JVM until the test ends.
func stopForGood(t *testing.T, jvm *jvmtest.JVM) {
	t.Helper()
	if err := unix.Kill(jvm.PID, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Kill(jvm.PID, unix.SIGCONT) })
}

// compareHolders compares the shares of the direct holders of orders with a heap dump. Both count dead holders that are
// not collected yet.
func compareHolders(t *testing.T, got *profile.HeapHolders, d *hprofread.Dump) {
	t.Helper()
	shares := map[string]float64{}
	for _, row := range got.Rows {
		if row.Missing != "" {
			t.Logf("%.4f %s %+v", row.Share, row.Missing, row.Path)
		}
		if len(row.Path) == 0 {
			continue
		}
		shares[row.Path[0].Class+"."+row.Path[0].Field] += row.Share
	}
	want := directHolders(d, "truth/HeapLeaks$Order")
	for _, held := range []string{"java.util.concurrent.ConcurrentHashMap$Node.val", "java.util.HashMap$Node.value",
		"truth.HeapLeaks$$Lambda.arg$1", "java.lang.Object[]."} {
		if off := math.Abs(want[held] - shares[held]); want[held] == 0 || off > 0.04 {
			t.Errorf("%s holds %.4f, and %.4f in the heap dump: %v", held, shares[held], want[held], want)
		}
	}
}

// directHolders returns the share of a class's objects to which each kind of reference in a heap dump leads.
func directHolders(d *hprofread.Dump, class string) map[string]float64 {
	held, all := map[uint64]map[string]bool{}, 0.0
	for id, o := range d.Objects {
		if c := d.Classes[o.Class]; c != nil && c.Name == class {
			held[id] = map[string]bool{}
			all++
		}
	}
	note := func(id uint64, class, field string) {
		if by := held[id]; by != nil {
			by[naming.Class(vmstructs.JavaName(class))+"."+field] = true
		}
	}
	for _, o := range d.Objects {
		c := d.Classes[o.Class]
		if c == nil {
			continue
		}
		data := o.Data
		if c.Name[0] == '[' {
			for ; len(data) >= 8; data = data[8:] {
				note(binary.BigEndian.Uint64(data), c.Name, "")
			}
			continue
		}
		for k := c; k != nil; k = d.Classes[k.Super] {
			for _, f := range k.Fields {
				size := hprofread.Size(f.Type)
				if f.Type == objectType {
					note(binary.BigEndian.Uint64(data), k.Name, f.Name)
				}
				data = data[size:]
			}
		}
	}
	shares := map[string]float64{}
	for _, by := range held {
		for label := range by {
			shares[label] += 1 / all
		}
	}
	return shares
}

// objectType is the number of the type "reference" in the format.
const objectType = 2

// leakOf looks for leaks over some readings.
func leakOf(t *testing.T, jvm *jvmtest.JVM, r *Reader, readings int, every time.Duration) *profile.HeapHeld {
	t.Helper()
	trend, known := &Trend{}, r.Tenured()
	for n := range readings {
		if n == readings/2 {
			jvm.Command("gc")
		}
		h, err := r.Read(Options{Time: 10 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		trend.Add(h)
		time.Sleep(every)
	}
	g, held := trend.Growth(), &profile.HeapHeld{}
	if g == nil {
		t.Fatal("no growth is known")
	}
	if names := Growers(g); len(names) > 0 {
		found, err := r.Holders(Options{Time: 10 * time.Second}, names, known)
		if err != nil {
			t.Fatal(err)
		}
		held = found
	}
	FindLeaks(held, g)
	return held
}

// TestLeaks: each leak of the program is named first, with its holder. Healthy programs have no leak.
func TestLeaks(t *testing.T) {
	some, leaks := []string{"-XX:+UseSerialGC"}, []string{"cache", "loader"}
	if os.Getenv("GOPROF_PROVE") != "" {
		leaks = slices.Sorted(maps.Keys(endings))
		some = append(some, "-XX:+UseParallelGC", "-XX:+UseG1GC", "-XX:+UseZGC -Xms96m -Xmx96m",
			"-XX:+UseSerialGC -XX:-UseCompressedOops",
			"-XX:+UseG1GC -XX:-UseCompressedOops")
	}
	jvmtest.ForNewestJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		for _, flags := range some {
			t.Run(flags, func(t *testing.T) {
				jvm := jvmtest.Start(t, jdk, "truth.HeapLeaks",
					strings.Fields("-Xms192m -Xmx192m -Xmn6m -XX:MaxTenuringThreshold=1 "+flags+" --")...)
				r, err := openLive(t, jvm)
				if err != nil {
					t.Fatal(err)
				}
				every, garbage := 300*time.Millisecond, "garbage 20"
				if strings.Contains(flags, "ZGC") { // ZGC collects young objects rarely
					every, garbage = time.Second, "garbage 100"
				}
				jvm.Command(garbage)
				for way := range 10 {
					jvm.Command("healthy " + strconv.Itoa(way))
				}
				time.Sleep(5 * time.Second)
				if held := leakOf(t, jvm, r, 8, every); len(held.Leaks) > 0 {
					t.Errorf("a leak is named: %+v", held.Leaks[0])
				}
				for _, what := range leaks {
					jvm.Command("rest")
					jvm.Command(garbage)
					jvm.Command(what + " 1000")
					found := false
					for tries := 0; tries < 8 && !found; tries++ { // a program that gets no CPU for a while leaks in steps
						held := leakOf(t, jvm, r, 8, every)
						found = len(held.Leaks) > 0 && goes(held.Leaks[0].Path, endings[what][1:])
						for _, l := range held.Leaks {
							if t.Logf("%s: %+v", what, l); !goes(l.Path, endings[what][len(endings[what])-1:]) {
								t.Errorf("%s: another leak is named", what)
							}
						}
						if !found {
							t.Logf("%s: %+v, %q", what, held.Growth, held.Notes)
							for _, h := range held.Holders {
								for _, row := range h.Rows {
									t.Logf("%s: %.3f %s %+v", h.Class, row.Share, row.Missing, row.Path)
								}
							}
						}
					}
					if !found {
						t.Errorf("%s is not named first", what)
					}
				}
			})
		}
	})
}
