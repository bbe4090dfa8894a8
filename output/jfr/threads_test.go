package jfr

import (
	"bytes"
	"io"
	"testing"
	"time"

	"goprof/profile"
)

// TestThreadsAreOneConstant: whatever names samples have for a thread, a chunk has one constant for it, with the last
// name, and events with its earlier names. A thread that gets the tid of an ended thread is another one.
func TestThreadsAreOneConstant(t *testing.T) {
	thread := func(kernel string, id int64, java string) profile.Thread {
		return profile.Thread{TID: 7, Name: kernel, JavaID: id, JavaName: java}
	}
	at := func(i int) profile.Instant { return profile.Instant{Wall: int64(i) * 1e9, Ticks: int64(i) * 1e9} }
	var b bytes.Buffer
	w := NewWriter(&b, Options{ChunkLength: 20 * time.Second})
	for i, one := range []profile.Thread{thread("java", 0, ""), thread("java", 1, "main"), thread("java", 0, ""),
		thread("java", 1, "renamed"), thread("java", 0, "")} {
		if err := w.Sample(&profile.Sample{At: at(i), Thread: one, Stack: &profile.Stack{}}); err != nil {
			t.Fatal(err)
		}
	}
	ended := thread("java", 1, "renamed")
	if err := w.ThreadEnd(at(6), ended); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{7, 40} { // also in a second chunk
		next := profile.Sample{At: at(i), Thread: thread("next", 2, "next"), Stack: &profile.Stack{}}
		if err := w.Sample(&next); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(at(41)); err != nil {
		t.Fatal(err)
	}
	r := NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()), func(string, bool) bool { return true })
	var chunks [][]profile.Thread
	r.Threads(func(all []profile.Thread) { chunks = append(chunks, all) })
	samples, earlier := map[string]int{}, ""
	for {
		e, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.Name == "jdk.ExecutionSample" || e.Name == "jdk.NativeMethodSample" {
			samples[e.Thread.JavaName]++
		}
		for _, f := range e.Fields {
			if e.Name == "goprof.EarlierName" && f.Name == "name" {
				earlier += f.Text
			}
		}
	}
	if len(chunks) != 2 || len(chunks[0]) != 2 || len(chunks[1]) != 1 {
		t.Errorf("%+v", chunks)
	}
	if samples["renamed"] != 5 || samples["next"] != 2 || earlier != "main" {
		t.Errorf("samples %v, earlier %q", samples, earlier)
	}
}
