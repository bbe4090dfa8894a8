package recording

import (
	"cmp"
	"slices"
	"strings"

	"goprof/profile"
)

// A file may have several names for one thread: the program renames it, its Java name becomes known late, or one part
// of a recording never gets it. Each name makes another profile.Thread. So all samples of a thread get its last name,
// and it is one thread for all code that reads the file. A tid may later belong to another thread. Two facts show this:
// different numbers of the threads in the JVM, or an event for the end of the first thread.

// toldThreads are the threads that a file lists, in its order.
type toldThreads struct {
	met     []profile.Thread
	seen    map[profile.Thread]bool
	ended   map[int]bool // by tid
	renamed []profile.Thread
}

// maxThreads bounds the kept threads. Further ones keep the names in their samples.
const maxThreads = 1 << 17

// meet notes the threads of a chunk, which are sorted by key.
func (t *toldThreads) meet(all []profile.Thread) {
	if t.seen == nil {
		t.seen, t.ended = make(map[profile.Thread]bool), make(map[int]bool)
	}
	for _, one := range all {
		if one.TID > 0 && !one.Virtual && !t.seen[one] && len(t.met) < maxThreads {
			t.seen[one] = true
			t.met = append(t.met, one)
		}
	}
}

func (t *toldThreads) rename(tid int, id int64, name string) {
	if tid > 0 && len(t.renamed) < maxThreads {
		t.renamed = append(t.renamed, profile.Thread{TID: tid, JavaID: id, JavaName: name})
	}
}

func (t *toldThreads) end(tid int) {
	if len(t.ended) < maxThreads && t.ended != nil {
		t.ended[tid] = true
	}
}

// settled maps each profile.Thread of a file to one with its thread's last name.
type settled struct {
	is      map[profile.Thread]profile.Thread // those whose last name differs
	recent  profile.ByThread[profile.Thread]  // a cache in front of is
	earlier map[profile.Thread][]string
}

// of returns the thread with its last name.
func (s *settled) of(t *profile.Thread) profile.Thread {
	if len(s.is) == 0 {
		return *t
	}
	if is, known := s.recent.Get(t); known {
		return is
	}
	is, other := s.is[*t]
	if !other {
		is = *t
	}
	s.recent.Put(t, is)
	return is
}

func (t *toldThreads) settled() settled {
	byTID := make(map[int][]profile.Thread)
	for _, one := range t.met {
		byTID[one.TID] = append(byTID[one.TID], one)
	}
	s := settled{is: make(map[profile.Thread]profile.Thread), earlier: make(map[profile.Thread][]string)}
	for _, all := range byTID {
		for _, same := range t.same(all) {
			s.settle(same)
		}
	}
	for _, old := range t.renamed {
		for _, one := range byTID[old.TID] {
			if one.JavaID == old.JavaID {
				s.note(s.of(&one), old.JavaName)
				break
			}
		}
	}
	return s
}

// same divides the profile.Threads with one tid into lists. Each list is one thread.
func (t *toldThreads) same(all []profile.Thread) (lists [][]profile.Thread) {
	lives := make(map[int64][]profile.Thread) // by number in the JVM
	var ids []int64
	for _, one := range all {
		if _, known := lives[one.JavaID]; !known {
			ids = append(ids, one.JavaID)
		}
		lives[one.JavaID] = append(lives[one.JavaID], one)
	}
	if len(ids) == 1 && ids[0] == 0 && !t.ended[all[0].TID] {
		return [][]profile.Thread{all}
	}
	for _, one := range lives[0] {
		if id := t.numberOf(&one, ids, lives); id != 0 {
			lives[id] = append([]profile.Thread{one}, lives[id]...) // a thread with fewer known facts does not give the name
		} else if n := len(lists) - 1; n >= 0 && sameKernelName(&lists[n][0], &one) {
			lists[n] = append(lists[n], one)
		} else {
			lists = append(lists, []profile.Thread{one})
		}
	}
	for _, id := range ids {
		if id != 0 {
			lists = append(lists, lives[id])
		}
	}
	return lists
}

// numberOf guesses the JVM's number of a thread if the file does not have it. It is the number of the only thread with
// the same kernel name, or else of the only thread with the tid, unless it has ended. It returns 0 if there is none.
func (t *toldThreads) numberOf(of *profile.Thread, ids []int64, lives map[int64][]profile.Thread) (found int64) {
	numbers, only := 0, int64(0)
	for _, id := range ids {
		if id == 0 {
			continue
		}
		numbers, only = numbers+1, id
		if slices.ContainsFunc(lives[id], func(one profile.Thread) bool { return sameKernelName(&one, of) }) {
			if found != 0 {
				return 0
			}
			found = id
		}
	}
	if found == 0 && numbers == 1 && !t.ended[of.TID] {
		return only
	}
	return found
}

// sameKernelName reports whether two threads can have the same kernel name. The JVM sets the kernel's name to the
// beginning of the Java name.
func sameKernelName(one, of *profile.Thread) bool {
	return of.Name == "" || one.Name == of.Name || one.JavaName != "" && strings.HasPrefix(one.JavaName, of.Name)
}

// settle gives all Threads of a list the last name.
func (s *settled) settle(same []profile.Thread) {
	last := same[len(same)-1]
	for _, one := range same {
		last.JavaName, last.Name = cmp.Or(last.JavaName, one.JavaName), cmp.Or(last.Name, one.Name)
	}
	for _, one := range same {
		if one != last {
			s.is[one] = last
		}
		s.note(last, one.JavaName)
	}
}

// maxEarlier bounds the earlier names that are kept for a thread.
const maxEarlier = 64

func (s *settled) note(t profile.Thread, name string) {
	names := s.earlier[t]
	if name != "" && name != t.JavaName && len(names) < maxEarlier && !slices.Contains(names, name) {
		s.earlier[t] = append(names, name)
	}
}
