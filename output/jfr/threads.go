package jfr

import (
	"cmp"
	"slices"

	"goprof/profile"
)

// threads are the threads of a chunk. Samples may have several names for one thread: the program renames it, or one
// part of a recording never gets its Java name. Viewers show a thread for each constant. So a thread is one constant
// with its last name, which is written when the chunk ends. Its earlier names are events.
type threads struct {
	list  []chunkThread
	of    map[profile.Thread]int   // indexes in list, by everything that samples know about a thread
	at    profile.ByThread[uint64] // a cache in front of of
	byTID map[int]int              // the last one with a tid

	last   uint64                 // last used key
	before map[int]profile.Thread // threads whose key was their tid in the previous chunk
}

type chunkThread struct {
	key     uint64
	is      profile.Thread
	earlier []string
	ended   bool // later uses of the tid are another thread
}

// firstThreadKey is the first key that is no tid: tids are smaller (PID_MAX_LIMIT of the kernel, 1 << 22). A thread's
// key is its tid if possible, because async-profiler's converter shows keys as tids.
const firstThreadKey = 1 << 22

func newThreads() threads {
	return threads{of: make(map[profile.Thread]int), byTID: make(map[int]int), before: make(map[int]profile.Thread),
		last: firstThreadKey}
}

func (ts *threads) reset() {
	clear(ts.before)
	for i := range ts.list {
		if t := &ts.list[i]; t.key == uint64(t.is.TID) && !t.ended {
			ts.before[t.is.TID] = t.is
		}
	}
	ts.list = ts.list[:0]
	clear(ts.of)
	clear(ts.byTID)
	ts.at.Clear()
}

func (ts *threads) key(t *profile.Thread) uint64 {
	if key, ok := ts.at.Get(t); ok {
		return key
	}
	i, known := ts.of[*t]
	if !known {
		i = ts.place(t)
		ts.of[*t] = i
	}
	ts.list[i].rename(t)
	ts.at.Put(t, ts.list[i].key)
	return ts.list[i].key
}

func (ts *threads) place(t *profile.Thread) int {
	single := t.TID > 0 && !t.Virtual
	i, taken := ts.byTID[t.TID]
	if single && taken && ts.list[i].isSame(t) {
		return i
	}
	made := chunkThread{key: uint64(t.TID), is: *t}
	before, known := ts.before[t.TID]
	switch was := (chunkThread{is: before}); {
	case t.TID <= 0 || t.TID >= firstThreadKey || taken || known && !was.isSame(t),
		known && before.JavaName == "" && t.JavaName != "", known && t.Virtual && before != *t:
		// The JDK's reader would use the constant of this key in the last chunk, which has no name.
		ts.last++
		made.key = ts.last
	case known && single:
		made.is = before
	}
	ts.byTID[t.TID] = len(ts.list)
	ts.list = append(ts.list, made)
	return len(ts.list) - 1
}

// isSame reports whether a sample with this thread's tid is of this thread. Threads that share a tid have different
// numbers in the JVM.
func (c *chunkThread) isSame(t *profile.Thread) bool {
	switch {
	case c.is.Virtual || t.Virtual:
		return c.is == *t
	case c.is.JavaID != 0 && t.JavaID != 0:
		return c.is.JavaID == t.JavaID
	}
	return !c.ended || c.is.Name == t.Name && c.is.JavaName == t.JavaName
}

// maxEarlier bounds the earlier names that are kept for a thread.
const maxEarlier = 64

// rename stores the names that a sample has for the thread.
func (c *chunkThread) rename(t *profile.Thread) {
	if old := c.is.JavaName; old != "" && t.JavaName != "" && old != t.JavaName && len(c.earlier) < maxEarlier &&
		!slices.Contains(c.earlier, old) {
		c.earlier = append(c.earlier, old)
	}
	c.is.Name, c.is.JavaName = cmp.Or(t.Name, c.is.Name), cmp.Or(t.JavaName, c.is.JavaName)
	c.is.JavaID = cmp.Or(c.is.JavaID, t.JavaID)
}

func (ts *threads) end(t *profile.Thread) {
	if i, ok := ts.of[*t]; ok {
		ts.list[i].ended = true
	}
}

func (ts *threads) constants() constantList {
	list := constantList{typ: typeThread, count: len(ts.list)}
	for i := range ts.list {
		t := &ts.list[i].is
		b := appendInt(list.data, ts.list[i].key)
		b = appendString(b, t.Name)
		b = appendInt(b, uint64(t.TID))
		b = appendString(b, t.JavaName)
		b = appendInt(b, uint64(t.JavaID))
		b = append(b, 0) // group
		list.data = appendBool(b, t.Virtual)
	}
	return list
}

func (w *Writer) earlierNames() {
	for i := range w.pools.threads.list {
		t := &w.pools.threads.list[i]
		for _, name := range t.earlier {
			if name == t.is.JavaName {
				continue
			}
			w.put(typeEarlierName, w.until, int64(t.is.TID), t.is.JavaID, name)
			w.unsaved-- // it does not count as an event
		}
	}
}
