//go:build linux

package oracle

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"goprof/profile"
	"goprof/session"
	"goprof/testdata/jvmtest"
	"goprof/vmstructs"
)

// unknownMajor is a release that does not exist yet.
const unknownMajor = 29

// TestUnknownJVM runs JVMs that nobody has seen: copies of a JDK whose libjvm.so says that it is another release, and
// exports a field under another name. They run as they always did, so their stacks are known; those that
// goprof still tells must be right.
func TestUnknownJVM(t *testing.T) {
	t.Parallel()
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		if jdk.Version < 21 {
			t.Skip("a new release could not be like it: since 20 compressed numbers are written in another way")
		}
		if jdk.Stripped(t) {
			t.Skip("its libjvm.so has no symbol of the version's number, to change it")
		}
		type change struct {
			name, field string
			lost        string // what it costs
			whole       bool   // stacks are whole all the same
		}
		cases := []change{
			{"new release", "", "", true},
			{"no frame anchors", "_last_Java_sp", "frame anchors: JavaFrameAnchor._last_Java_sp", false},
			{"no deoptimization", "_vframe_array_head", "frames in deoptimization: JavaThread._vframe_array_head", true},
			{"no thread names", "_threadObj", "thread names: JavaThread._threadObj", true},
			{"no interpreter", "_stub_buffer", "interpreted frames: StubQueue._stub_buffer", false},
			{"no call stub", "_call_stub_return_address", "call stub: StubRoutines._call_stub_return_address", false},
		}
		for _, c := range append(cases[:1:1], jvmtest.Drawn(t, 1, cases[1:])...) {
			t.Run(c.name, func(t *testing.T) {
				other := changedJDK(t, jdk, c.field)
				jvm, path := startShadow(t, other, nil, nil)
				doubts := strings.Join(attach(t, jvm.PID).Doubts(), "\n")
				if !strings.Contains(doubts, "not tested on JDK 29 (") || !strings.Contains(doubts, c.lost) {
					t.Errorf("doubts: %q", doubts)
				}
				count := watchShadow(t, jvm, path, false, 200)
				if n := count.verdicts[jvmtest.Mismatch]; n > 0 {
					t.Errorf("%d stacks are wrong", n)
				}
				if c.whole && count.truncated > atMost(1.0/50, count.stops) {
					t.Errorf("%d of %d stacks are cut", count.truncated, count.stops)
				}
			})
		}
		t.Run("Zero", func(t *testing.T) {
			wantZero(t, jdkWith(t, jdk, func(library []byte) []byte {
				return bytes.ReplaceAll(library, []byte("-Bit Server VM ("), []byte("-Bit Zero VM   ("))
			}))
		})
		t.Run("no debug information", func(t *testing.T) {
			withoutDebugInformation(t,
				changedJDK(t, jdk, "_scopes_pcs_offset"))
		})
		for field, name := range map[string]string{"_constMethod": "Method._constMethod",
			"_compile_id": "nmethod._compile_id"} {
			t.Run("no "+name, func(t *testing.T) {
				jvm := jvmtest.Start(t, changedJDK(t, jdk, field), "truth.Shadow", "--", filepath.Join(t.TempDir(), "shadow"))
				_, err := session.Attach(jvm.PID)
				var unsupported *vmstructs.Unsupported
				if !errors.As(err, &unsupported) || !strings.Contains(err.Error(), name) {
					t.Errorf("%v, want a refusal that names %s", err, name)
				}
			})
		}
	})
}

// TestZeroVM: the real one, whose call stub leaves no return address, so that it must not be taken for a JVM that
// starts.
func TestZeroVM(t *testing.T) {
	home := os.Getenv("GOPROF_ZERO")
	if home == "" {
		t.Skip("GOPROF_ZERO names no Zero VM: make test-matrix fetches one (scripts/jdks.sh zero)")
	}
	wantZero(t, jvmtest.JDK{Version: 17, Home: home, Label: "zero"}, "-zero")
}

// wantZero: a JVM that calls itself Zero is refused as that.
func wantZero(t *testing.T, jdk jvmtest.JDK, options ...string) {
	t.Helper()
	jvm := jvmtest.Start(t, jdk, "truth.Shadow", append(options, "--", filepath.Join(t.TempDir(), "shadow"))...)
	if _, err := session.Attach(jvm.PID); !errors.Is(err, vmstructs.ErrZero) {
		t.Errorf("%v, want a refusal of a Zero VM", err)
	}
}

// withoutDebugInformation: of compiled code only the methods are told that own it, in their order, without lines.
func withoutDebugInformation(t *testing.T, jdk jvmtest.JDK) {
	path := filepath.Join(t.TempDir(), "shadow")
	jvm := jvmtest.Start(t, jdk, "truth.Shadow", "--", path)
	shadow, err := jvmtest.OpenShadow(path)
	if err != nil {
		t.Fatal(err)
	}
	defer shadow.Close()
	s := attach(t, jvm.PID)
	if doubts := strings.Join(s.Doubts(), "\n"); !strings.Contains(doubts, "inlined frames: nmethod._scopes_pcs_offset") {
		t.Errorf("doubts: %q", doubts)
	}
	threads, err := shadow.Threads()
	if err != nil || len(threads) == 0 {
		t.Fatal("no shadow threads", err)
	}
	tid, compiled := threads[0].TID, 0
	th, _ := s.Thread(tid)
	for i := 0; i < 200 || compiled == 0 && i < 100*200; i++ { // a starved compiler takes its time
		own, snap := stopShadow(t, s, shadow, tid, th, func() {})
		var st profile.Stack
		s.Walker.Walk(snap, &st)
		var walked, kept []string // from the root
		for _, f := range slices.Backward(st.Frames) {
			if f.Kind == profile.C1 || f.Kind == profile.C2 {
				if compiled++; f.Line != 0 {
					t.Fatalf("%s is in line %d: who says so?", f.Func.Name, f.Line)
				}
			}
			if name, ok := shadow.Name(f.Func.Name); ok && f.Kind.Java() {
				walked = append(walked, name)
			}
		}
		for _, f := range slices.Backward(own.Frames) {
			kept = append(kept, f.Method)
		}
		// While the topmost method enters or leaves, either may know one more.
		if st.Truncated == profile.Whole && len(walked) > 0 && !inOrder(walked[:len(walked)-1], kept) {
			t.Fatalf("%q are not in this order in %q\n%s", walked, kept, describe(s, snap, &st))
		}
		pause(i)
	}
	if compiled == 0 {
		t.Error("no compiled frame was seen")
	}
}

// inOrder: all of some are among the others, in their order.
func inOrder(some, others []string) bool {
	for _, o := range others {
		if len(some) > 0 && some[0] == o {
			some = some[1:]
		}
	}
	return len(some) == 0
}

// changedJDK copies a JDK that says that it is of an unknown release, and exports a field under another name.
func changedJDK(t *testing.T, jdk jvmtest.JDK, field string) jvmtest.JDK {
	t.Helper()
	return jdkWith(t, jdk, func(library []byte) []byte {
		setMajor(t, library)
		if field != "" {
			renameField(t, library, field)
		}
		return library
	})
}

// jdkWith copies a JDK, with links for all but libjvm.so, which is changed.
func jdkWith(t *testing.T, jdk jvmtest.JDK, change func([]byte) []byte) jvmtest.JDK {
	t.Helper()
	library := jdk.Library(t)
	data, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	data = change(data)
	home, err := filepath.EvalSymlinks(jdk.Home)
	if err != nil {
		t.Fatal(err)
	}
	other := jvmtest.JDK{Version: jdk.Version, Release: jdk.Release, Home: t.TempDir(), Label: "changed"}
	err = filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(other.Home, strings.TrimPrefix(path, home))
		switch {
		case path == library:
			return os.WriteFile(to, data, 0o755)
		case filepath.Ext(path) == ".jsa": // archives of classes belong to one libjvm.so
			return nil
		case d.IsDir():
			return os.MkdirAll(to, 0o755)
		case strings.HasPrefix(path, filepath.Join(home, "bin")+"/"): // the launcher finds its JVM from where it lies
			return copyCommand(path, to)
		}
		return os.Symlink(path, to)
	})
	if err != nil {
		t.Fatal(err)
	}
	return other
}

func copyCommand(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o755)
}

// setMajor makes a library say that it is of another release.
func setMajor(t *testing.T, data []byte) {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if s.Name != "_ZN19Abstract_VM_Version17_vm_major_versionE" {
			continue
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD && s.Value >= p.Vaddr && s.Value+4 <= p.Vaddr+p.Filesz {
				binary.LittleEndian.PutUint32(data[p.Off+s.Value-p.Vaddr:], unknownMajor)
				return
			}
		}
	}
	t.Fatal("libjvm.so has no number of its release that could be changed")
}

// renameField changes the last letter of a name in the table of fields.
func renameField(t *testing.T, data []byte, field string) {
	t.Helper()
	name := []byte("\x00" + field + "\x00")
	if bytes.Count(data, name) == 0 {
		t.Fatalf("%s is no string of its own in libjvm.so", field)
	}
	for {
		i := bytes.Index(data, name)
		if i < 0 {
			return
		}
		data[i+1] = '9' // its end may be another string's, too: linkers merge them
	}
}
