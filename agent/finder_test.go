//go:build linux

package agent

import (
	"slices"
	"testing"
	"time"

	"goprof/diagnose"
	"goprof/process/maybe"
)

// oneProcess is a world with one process. Of this World only the finder's questions are asked.
type oneProcess struct {
	World
	brief  diagnose.Brief
	isJVM  bool
	hangs  bool
	looked []bool // the arguments of Glance
}

func (w *oneProcess) PIDs() []int                      { return []int{7} }
func (w *oneProcess) Brief(int) (diagnose.Brief, bool) { return w.brief, true }
func (w *oneProcess) Glance(pid int, closely bool) (diagnose.JVM, maybe.Value[bool]) {
	w.looked = append(w.looked, closely)
	return diagnose.JVM{PID: pid}, maybe.If(w.isJVM, !w.hangs)
}

// looks are the glances at a process within so many seconds.
func (w *oneProcess) looks(f *finder, from, seconds int) (born int) {
	w.looked = nil
	for s := range seconds {
		born += len(f.beat(time.Unix(int64(from+s), 0)).born)
	}
	return born
}

// TestFinderLooksWhenNeeded: a program that does not grow is looked at once, and closely each minute. A program that
// grows by a JVM is looked at soon.
func TestFinderLooksWhenNeeded(t *testing.T) {
	w := &oneProcess{brief: diagnose.Brief{Comm: "server", Threads: 5, Space: 1 << 30}}
	f := &finder{world: w, known: map[int]*seenProcess{}}
	if w.looks(f, 0, 60); !slices.Equal(w.looked, []bool{false}) {
		t.Errorf("looks in the first minute, closely or not: %v", w.looked)
	}
	if w.looks(f, 60, 130); !slices.Equal(w.looked, []bool{true, true, true}) {
		t.Errorf("looks in the two minutes after that: %v", w.looked)
	}
	w.brief.Comm = "another" // by exec
	if w.looks(f, 200, 60); !slices.Equal(w.looked, []bool{false}) {
		t.Errorf("looks after exec: %v", w.looked)
	}

	w = &oneProcess{brief: diagnose.Brief{Comm: "server", Threads: 5, Space: 1 << 30}}
	f = &finder{world: w, known: map[int]*seenProcess{}}
	w.looks(f, 0, 4)
	w.brief.Space -= 512 << 20 // it gives memory back, and then loads a JVM
	w.looks(f, 4, 4)
	w.brief.Space += 64 << 20
	w.isJVM = true
	if born := w.looks(f, 8, 8); born != 1 || !slices.Equal(w.looked, []bool{false}) {
		t.Errorf("%d JVMs, looks %v", born, w.looked)
	}
}

// TestFinderAsksAgain: a process that did not answer is asked again soon, however long it has been there.
func TestFinderAsksAgain(t *testing.T) {
	for _, old := range []int{0, 600} {
		w := &oneProcess{brief: diagnose.Brief{Comm: "python3", Threads: 5, Space: 1 << 30}}
		f := &finder{world: w, known: map[int]*seenProcess{}}
		w.looks(f, 0, old)
		w.hangs, w.isJVM = true, true
		w.brief.Space += 1 << 30 // it loads a JVM
		from := old
		for w.looked = nil; len(w.looked) == 0; from++ {
			w.looks(f, from, 1)
		}
		w.hangs = false
		if born := w.looks(f, from, 11); born != 1 {
			t.Errorf("a program of %d s: %d JVMs are found, looks %v", old, born, w.looked)
		}
	}
}

// TestFinderLooksAtJava: a process with the name of Java's launcher may be a JVM at any moment.
func TestFinderLooksAtJava(t *testing.T) {
	w := &oneProcess{brief: diagnose.Brief{Comm: "java", Threads: 1, Space: 1 << 20}}
	f := &finder{world: w, known: map[int]*seenProcess{}}
	w.looks(f, 0, 4)
	w.isJVM = true
	if born := w.looks(f, 4, 5); born != 1 || slices.Contains(w.looked, false) {
		t.Errorf("%d JVMs, looks %v", born, w.looked)
	}
}
