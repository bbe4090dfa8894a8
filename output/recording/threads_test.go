package recording

import (
	"fmt"
	"testing"

	"goprof/profile"
)

func TestSettledThreads(t *testing.T) {
	thread := func(tid int, kernel string, id int64, java string) profile.Thread {
		return profile.Thread{TID: tid, Name: kernel, JavaID: id, JavaName: java}
	}
	for _, c := range []struct {
		name  string
		met   []profile.Thread
		ended bool // the first thread has ended
		want  string
	}{
		{"a name that is learnt late", []profile.Thread{thread(7, "java", 0, ""), thread(7, "java", 1, "main")}, false,
			"main main"},
		{"a part without names comes later", []profile.Thread{thread(7, "java", 1, "main"), thread(7, "java", 0, "")}, false,
			"main main"},
		{"renamed", []profile.Thread{thread(7, "w", 5, "a"), thread(7, "w", 5, "b"), thread(7, "w", 5, "c")}, false,
			"c c c [a b]"},
		{"a native thread is renamed", []profile.Thread{thread(7, "a", 0, ""), thread(7, "b", 0, "")}, false, "b b"},
		{"two threads of one tid", []profile.Thread{thread(7, "a", 5, "a"), thread(7, "b", 6, "b")}, false, "a b"},
		{"two threads, and a kernel name of one", []profile.Thread{thread(7, "a", 0, ""), thread(7, "a", 5, "a"),
			thread(7, "b", 6, "b")}, false, "a a b"},
		{"two threads, and a kernel name of neither", []profile.Thread{thread(7, "java", 0, ""), thread(7, "a", 5, "a"),
			thread(7, "b", 6, "b")}, false, "java a b"},
		{"ended, and a native one has the tid", []profile.Thread{thread(7, "pool-1-thread-1", 5, "pool-1-thread-12"),
			thread(7, "C2", 0, "")}, true, "pool-1-thread-12 C2"},
		{"ended, and its name was learnt late", []profile.Thread{thread(7, "pool-1-thread-1", 0, ""),
			thread(7, "pool-1-thread-1", 5, "pool-1-thread-12")}, true, "pool-1-thread-12 pool-1-thread-12"},
		{"virtual threads are not of their carrier's tid", []profile.Thread{{TID: 7, JavaID: 5, JavaName: "v", Virtual: true},
			thread(7, "c", 4, "carrier")}, false, "v carrier"},
	} {
		var all toldThreads
		all.meet(c.met)
		if c.ended {
			all.end(7)
		}
		s, got := all.settled(), ""
		for _, one := range c.met {
			is := s.of(&one)
			if got != "" {
				got += " "
			}
			if got += is.JavaName; is.JavaName == "" {
				got += is.Name
			}
		}
		for _, names := range s.earlier {
			got += " " + fmt.Sprint(names)
		}
		if got != c.want {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
}
