package batchdir

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"goprof/output"
	"goprof/output/folderlock"
	"goprof/output/jfr"
	"goprof/output/pprof"
	"goprof/output/recording"
	"goprof/profile"
	"goprof/profile/batch"
	"goprof/profile/resource"
)

func batchOf(name string, at time.Time, looks int64) *batch.Batch {
	g := batch.NewGatherer(batch.GatherOptions{})
	g.Add(&profile.Sample{At: profile.Instant{Wall: at.UnixNano()}, Thread: profile.Thread{TID: 7, Name: "main"},
		Stack: &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: "a.b"}, Kind: profile.Interpreted}}},
		Count: looks, CPU: time.Millisecond, NoState: true})
	var attributes resource.Attributes
	attributes.Set(resource.ServiceName, name)
	return g.Take(attributes, profile.Meta{PID: 42, Interval: time.Second / 19}, at, at.Add(time.Second))
}

func names(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != folderlock.LockName {
			all = append(all, e.Name())
		}
	}
	return all
}

// TestOneFolderOneUser: a second goprof gets an error while the first one uses the folder.
func TestOneFolderOneUser(t *testing.T) {
	dir := t.TempDir()
	first, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var inUse *folderlock.InUse
	if _, err := New(Options{Dir: dir}); !errors.As(err, &inUse) || !strings.Contains(err.Error(), dir) {
		t.Errorf("the second one: %v", err)
	}
	first.Close()
	second, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
}

var start = time.Date(2026, 11, 23, 1, 0, 0, 0, time.UTC)

func TestFilesCanBeRead(t *testing.T) {
	for _, asJFR := range []bool{false, true} {
		dir := filepath.Join(t.TempDir(), "made")
		s, err := New(Options{Dir: dir, JFR: asJFR})
		if err != nil {
			t.Fatal(err)
		}
		s.Offer(batchOf("../../etc/a b;<script>", start, 3))
		s.Close()
		all := names(t, dir)
		if len(all) != 1 || !ours.MatchString(all[0]) || strings.ContainsAny(all[0], " ;<>/") {
			t.Fatalf("%q", all)
		}
		f, err := os.Open(filepath.Join(dir, all[0]))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if asJFR {
			info, err := f.Stat()
			if err != nil {
				t.Fatal(err)
			}
			r := jfr.NewReader(f, info.Size(), func(string, bool) bool { return true })
			n := 0
			for e, err := r.Next(); e != nil || err != nil; e, err = r.Next() {
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n < 3 {
				t.Errorf("%d events", n)
			}
		} else if _, err := pprof.Read(f); err != nil {
			t.Errorf("pprof: %v", err)
		}
		if st := s.Stats(); st.Written != 1 || st.Offered != 1 || st.Dropped != 0 || st.Bytes == 0 {
			t.Errorf("%+v", st)
		}
	}
}

// TestEventFiles: a batch of an event is a file of its own, with the event's name, type and unit.
func TestEventFiles(t *testing.T) {
	alloc := profile.EventKind{Name: "alloc", Unit: profile.Bytes}
	for kind, want := range map[profile.EventKind][2]string{
		alloc:                                  {"samples/count,alloc_space/bytes", "jdk.ObjectAllocationSample"},
		{Name: "lib/x:a b"}:                    {"lib_x_a_b/count", "goprof.event.lib_x_a_b"},
		{Name: "lock", Unit: profile.WallTime}: {"samples/count,delay/nanoseconds", "profiler.WallClockSample"},
	} {
		dir := t.TempDir()
		b := batchOf("shop", start, 3)
		b.Event, b.Meta.Mode = kind, kind.Name
		b.Samples[0].About, b.Samples[0].Wall = kind == alloc, kind.Unit.IsTime()
		for _, asJFR := range []bool{false, true} {
			s, err := New(Options{Dir: dir, JFR: asJFR})
			if err != nil {
				t.Fatal(err)
			}
			s.Offer(b)
			s.Close()
		}
		for _, name := range names(t, dir) {
			if !ours.MatchString(name) || !strings.Contains(name, "-shop.") {
				t.Errorf("%q", name)
			}
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if got := typesIn(t, data); got != want[0] && !strings.Contains(got, want[1]) {
				t.Errorf("%s has %s, not %q", name, got, want)
			}
		}
	}
}

// typesIn returns the types of values in a pprof file, or the events in a JFR file.
func typesIn(t *testing.T, data []byte) string {
	t.Helper()
	if file, err := pprof.Read(bytes.NewReader(data)); err == nil {
		return strings.Join(file.Types, ",")
	}
	all := ""
	r := jfr.NewReader(bytes.NewReader(data), int64(len(data)), func(string, bool) bool { return true })
	for {
		e, err := r.Next()
		if e == nil || err != nil {
			return all
		}
		all += e.Name + ","
	}
}

// The oldest files are removed first, including those of an earlier goprof. Other files are not removed.
func TestFolderIsBounded(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"20200101T000000Z-0000-1-old.pb.gz", "holiday.jpg", "20200101-report.pb.gz"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := New(Options{Dir: dir, MaxFiles: 3})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		s.Offer(batchOf("shop", start.Add(time.Duration(i)*time.Minute), 1))
	}
	s.Close()
	all := strings.Join(names(t, dir), " ")
	want := "20200101-report.pb.gz 20261123T010200Z-0000-42-shop.pb.gz 20261123T010300Z-0000-42-shop.pb.gz " +
		"20261123T010400Z-0000-42-shop.pb.gz holiday.jpg"
	if all != want {
		t.Errorf("%s", all)
	}
	if st := s.Stats(); st.Removed != 3 || st.Files != 3 {
		t.Errorf("%+v", st)
	}
}

// If one file cannot be removed, others are removed nevertheless. The failure is reported once.
func TestFolderIsBoundedAroundWhatStays(t *testing.T) {
	dir := t.TempDir()
	stays := filepath.Join(dir, "20200101T000000Z-0000-1-old.pb.gz")
	if err := os.WriteFile(stays, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	var said []string
	s, err := New(Options{Dir: dir, MaxFiles: 2, Tell: func(text string) { said = append(said, text) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(stays), os.MkdirAll(filepath.Join(stays, "full"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		s.Offer(batchOf("shop", start.Add(time.Duration(i)*time.Minute), 1))
	}
	s.Close()
	if all := names(t, dir); len(all) != 3 || len(said) != 1 || !strings.Contains(said[0], "cannot remove") {
		t.Errorf("%q, said %q", all, said)
	}
}

func TestBytesAreBounded(t *testing.T) {
	dir := t.TempDir()
	s, err := New(Options{Dir: dir, MaxBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		s.Offer(batchOf("shop", start.Add(time.Duration(i)*time.Minute), 1))
	}
	s.Close()
	if st := s.Stats(); st.Bytes > 1000 || st.Files == 0 || st.Files != len(names(t, dir)) {
		t.Errorf("%+v", st)
	}
}

// Two batches of the same second become two files.
func TestNamesDiffer(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // this also holds across two runs
		s, err := New(Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		s.Offer(batchOf("a", start, 1))
		s.Offer(batchOf("a", start, 1))
		s.Close()
	}
	if all := names(t, dir); len(all) != 4 {
		t.Errorf("%q", all)
	}
}

// The folder takes no files: batches are dropped and counted, and the failure is reported once.
func TestFolderGoesAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	var said []string
	s, err := New(Options{Dir: dir, Tell: func(text string) { said = append(said, text) }})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.Offer(batchOf("a", start, 1))
	}
	s.Close()
	s.Offer(batchOf("a", start, 1))
	if st := s.Stats(); st.Dropped != 4 || st.Failed != 3 || len(said) != 1 {
		t.Errorf("%+v, %q", st, said)
	}
}

// TestFolderIsExchanged: files are written and removed in the folder that was opened, even if its name leads elsewhere
// later.
func TestFolderIsExchanged(t *testing.T) {
	dir := t.TempDir()
	folder, moved, victim := filepath.Join(dir, "d"), filepath.Join(dir, "d.old"), filepath.Join(dir, "victim")
	s, err := New(Options{Dir: folder, MaxFiles: 1})
	if err != nil {
		t.Fatal(err)
	}
	s.Offer(batchOf("shop", start, 1))
	for s.Stats().Written == 0 {
		time.Sleep(time.Millisecond)
	}
	precious := filepath.Join(victim, names(t, folder)[0])
	err = errors.Join(os.Rename(folder, moved), os.Mkdir(victim, 0o700), os.Symlink("victim", folder),
		os.WriteFile(precious, []byte("precious"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	s.Offer(batchOf("shop", start.Add(time.Hour), 1))
	s.Close()
	if got := names(t, victim); len(got) != 1 || got[0] != filepath.Base(precious) {
		t.Errorf("the other folder holds %q", got)
	}
	if got := names(t, moved); len(got) != 1 || s.Stats().Removed != 1 {
		t.Errorf("the folder holds %q, %+v", got, s.Stats())
	}
}

// TestLeftovers: the next goprof removes the unfinished file of a killed one.
func TestLeftovers(t *testing.T) {
	dir := t.TempDir()
	begun := ".20261123T010000Z-0000-42-shop.pb.gz.123456.tmp"
	for _, name := range []string{begun, ".other.1.tmp"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := New(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if got := names(t, dir); len(got) != 1 || got[0] != ".other.1.tmp" {
		t.Errorf("%q", got)
	}
}

// TestTimeWithoutSamples: CPU time without samples is in both formats, and does not count as a sample.
func TestTimeWithoutSamples(t *testing.T) {
	for _, asJFR := range []bool{false, true} {
		dir := t.TempDir()
		s, err := New(Options{Dir: dir, JFR: asJFR})
		if err != nil {
			t.Fatal(err)
		}
		b := batchOf("shop", start, 3)
		b.Samples = append(b.Samples, batch.Sum{NoState: true, Points: []batch.Point{{CPU: time.Second}},
			Stack: &profile.Stack{Frames: []profile.Frame{{Func: &profile.Func{Name: profile.NotSampled}, Kind: profile.Gap}}}})
		s.Offer(b)
		s.Close()
		for weight, want := range map[profile.Weight]string{profile.CPUTime: "1000000000", profile.Samples: ""} {
			f, err := recording.Open(filepath.Join(dir, names(t, dir)[0]), recording.Options{Weight: &weight})
			if err != nil {
				t.Fatal(err)
			}
			p, err := recording.Sum(f, recording.SumOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var text strings.Builder
			if err := output.Collapsed(&text, p); err != nil {
				t.Fatal(err)
			}
			_, got, _ := strings.Cut(text.String(), profile.NotSampled+" ")
			got, _, _ = strings.Cut(got, "\n")
			if got != want || p.Counts.Samples() != 3 {
				t.Errorf("JFR %v, %v: %q is not sampled, %d samples\n%s", asJFR, weight, got, p.Counts.Samples(), text.String())
			}
			f.Close()
		}
	}
}
