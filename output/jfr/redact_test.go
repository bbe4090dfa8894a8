package jfr

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"goprof/profile"
	"goprof/profile/redact"
)

func redacted(t testing.TB, file []byte) ([]byte, *Redacted) {
	t.Helper()
	var out bytes.Buffer
	by := redact.New(redact.Default(), []byte("the key of this test"))
	r, err := Redact(&out, bytes.NewReader(file), int64(len(file)), by, func() (Spill, error) {
		return nil,
			errors.New("no spill")
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes(), r
}

// secretive is a recording of several chunks in which every name is secret.
func secretive(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b, Options{ChunkLength: time.Second})
	w.SetMeta(profile.Meta{Mode: "cpu", Interval: time.Millisecond, Host: "qxzzhost",
		MainClass: "com.qxzzcorp.Qxzz --pw=qxzz"})
	w.SetJVM(JVM{Name: "OpenJDK 64-Bit Server VM", Version: "17.0.1", MainClass: "/home/qxzz/qxzz.jar", PID: 7})
	w.SetOS("Qxzz OS")
	w.SetCPU(CPU{Type: "amd64", Description: "Qxzz CPU"})
	stack := &profile.Stack{Frames: []profile.Frame{
		{Func: &profile.Func{Name: "qxzz_native", Module: "/opt/qxzz/libqxzz.so", Build: "ab12"},
			Kind: profile.Native, BCI: -1},
		{Func: &profile.Func{Name: "memcpy", Module: "/lib/libc.so.6"}, Kind: profile.Native, BCI: -1},
		{Func: &profile.Func{Name: "com.qxzzcorp.Qxzz$Inner.qxzzPay", File: "QxzzFile.java"}, Kind: profile.C2,
			BCI: 3, Line: 7},
		{Func: &profile.Func{Name: "java.lang.Thread.run", File: "Thread.java"}, Kind: profile.Interpreted, BCI: 1,
			Line: 5},
	}}
	at := profile.Instant{Wall: 1e18, Ticks: 1e9}
	for i := range 40 {
		at.Wall, at.Ticks = at.Wall+1e8, at.Ticks+1e8
		s := &profile.Sample{At: at, Thread: profile.Thread{TID: 10 + i%3, Name: "qxzz-kernel",
			JavaName: fmt.Sprintf("qxzz-pool-%d", i%3)}, Stack: stack,
			CPU: time.Millisecond}
		if err := w.Sample(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{w.Mark(at, 5, "gc", "qxzz happened"), w.Account(at,
		&profile.Summary{Notes: []profile.Note{{Name: "qxzz", Text: "the qxzz"}}}),
		w.Close(at)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

// TestRedact: none of the secret names is left. Permitted names stay. The samples have the same number, depths and
// times.
func TestRedact(t *testing.T) {
	file := secretive(t)
	out, r := redacted(t, file)
	if r.Chunks < 3 || r.Events == 0 {
		t.Errorf("%+v", r)
	}
	for _, secret := range []string{"qxzz", "Qxzz"} {
		if at := bytes.Index(out, []byte(secret)); at >= 0 {
			t.Errorf("%q", out[max(0, at-40):min(len(out), at+40)])
		}
	}
	for _, stays := range []string{"java/lang/Thread", "memcpy", "libc.so.6", "Thread.java",
		"OpenJDK 64-Bit Server VM", "ab12"} {
		if !bytes.Contains(out, []byte(stays)) {
			t.Errorf("%s is gone", stays)
		}
	}
	var was, is []string
	for _, side := range []struct {
		file []byte
		to   *[]string
	}{{file, &was}, {out, &is}} {
		eachEvent(t, bytes.NewReader(side.file), func(e *Event) {
			text := fmt.Sprint(e.Name, e.At, e.Samples, e.CPU, e.Thread.TID, e.State, e.Stack.Truncated)
			for _, f := range e.Stack.Frames {
				text += fmt.Sprint(" ", f.Kind, f.Line, f.BCI, f.Func.Module != "", strings.Count(f.Func.Name, "."))
			}
			*side.to = append(*side.to, text)
		})
	}
	if len(was) != 40 || strings.Join(was, "\n") != strings.Join(is, "\n") {
		t.Errorf("was\n%.500s\nis\n%.500s", strings.Join(was, "\n"), strings.Join(is, "\n"))
	}
}

// TestRedactCutOff: the whole chunks of a cut-off file are redacted, and the result says that the file is cut off.
func TestRedactCutOff(t *testing.T) {
	file := secretive(t)
	_, r := redacted(t, file[:len(file)-10])
	if r.CutOff == nil || r.Chunks == 0 {
		t.Errorf("%+v", r)
	}
}

func FuzzRedact(f *testing.F) {
	f.Add(smallFile(f))
	f.Add(secretive(f))
	f.Fuzz(func(t *testing.T, file []byte) {
		by := redact.New(redact.Default(), nil)
		var out bytes.Buffer
		_, err := Redact(&out, bytes.NewReader(file), int64(len(file)), by, func() (Spill, error) {
			return nil,
				io.ErrShortWrite
		})
		var bad *BadRecording
		if err != nil && (!errors.As(err, &bad) || bad.Offset < 0 || bad.Offset > int64(len(file))) {
			t.Errorf("%v", err)
		}
		if out.Len() > 64*len(file)+1<<20 {
			t.Errorf("%d bytes of %d", out.Len(), len(file))
		}
		if err == nil {
			if _, err := readAll(out.Bytes()); err != io.EOF {
				_, before := readAll(file)
				if before == io.EOF {
					t.Errorf("what was written cannot be read: %v", err)
				}
			}
		}
	})
}

// TestUserEvents: a program may define events of its own. async-profiler writes them under the program's own names.
func TestUserEvents(t *testing.T) {
	pool := &class{name: "profiler.types.UserEventType", simple: true}
	if m := meaningOf(pool, &field{name: "name"}); m != secretText {
		t.Errorf("its names are taken for %d", m)
	}
}
