//go:build linux

package process

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestIncompleteLists: the kernel leaves out live threads if another thread ends during the listing. The result has all
// threads.
func TestIncompleteLists(t *testing.T) {
	type list struct {
		tids     []int
		complete bool
		err      error
	}
	for name, c := range map[string]struct {
		lists []list
		want  []int
		err   error
	}{
		"complete":   {lists: []list{{[]int{1, 2, 3}, true, nil}}, want: []int{1, 2, 3}},
		"one of two": {lists: []list{{[]int{1, 2, 9}, false, nil}, {[]int{3, 2, 1}, true, nil}}, want: []int{1, 2, 3}},
		"never complete": {lists: slices.Repeat([]list{{[]int{2, 1}, false, nil}, {[]int{3, 1}, false, nil}}, 2),
			want: []int{1, 2, 3}},
		"gone":  {lists: []list{{[]int{1}, false, nil}, {nil, false, ErrGone}}, err: ErrGone},
		"empty": {lists: []list{{nil, true, nil}}, err: ErrGone},
	} {
		got, err := completeList(func() ([]int, bool, error) {
			next := c.lists[0]
			c.lists = c.lists[1:]
			return next.tids, next.complete, next.err
		})
		if !slices.Equal(got, c.want) || !errors.Is(err, c.err) || len(c.lists) > 0 {
			t.Errorf("%s: %v, %v, %d lists are not asked for", name, got, err, len(c.lists))
		}
	}
}

// TestCompleteListsHaveAll lists the threads of a model of the kernel, while threads begin and end at any step. A list
// that counts as complete has all threads that lived from the beginning to the end. The model does skip threads: some
// lists lack a thread although they have as many threads as there were before and after.
func TestCompleteListsHaveAll(t *testing.T) {
	complete, skips := 0, 0
	random := rand.New(rand.NewPCG(1, 2))
	for range 100000 {
		m := &taskModel{random: random, changes: random.IntN(6)}
		for range 1 + random.IntN(8) {
			m.begin()
		}
		before := slices.Clone(m.living)
		list, all, err := readList(len(before), m.getdents)
		if err != nil {
			t.Fatal(err)
		}
		lacks := slices.ContainsFunc(before, func(tid int) bool {
			return slices.Contains(m.living, tid) && !slices.Contains(list, tid)
		})
		if lacks && len(list) == len(before) && len(list) == len(m.living) {
			skips++
		}
		if !all {
			continue
		}
		if complete++; lacks {
			t.Fatalf("a list is called complete: %v; before %v, after %v", list, before, m.living)
		}
	}
	t.Logf("%d of 100,000 lists are complete; %d lack a thread, and the counts do not show it", complete, skips)
	if complete < 50000 || skips == 0 {
		t.Error("the model shows nothing")
	}
}

// taskModel is a process, and a model of the kernel's proc_task_readdir (fs/proc/base.c).
type taskModel struct {
	living  []int // in the order in which they began
	last    int
	listed  int // the position in the folder
	changes int // how many threads may still begin or end
	random  *rand.Rand
}

func (m *taskModel) begin() {
	m.last++
	m.living = append(m.living, m.last)
}

// pass is a moment at which threads may begin and end.
func (m *taskModel) pass() {
	for ; m.changes > 0 && m.random.IntN(4) == 0; m.changes-- {
		if n := len(m.living); n > 1 && m.random.IntN(2) == 0 {
			i := 1 + m.random.IntN(n-1)
			m.living = slices.Delete(m.living, i, i+1)
		} else {
			m.begin()
		}
	}
}

func (m *taskModel) getdents() (tids []int, err error) {
	m.pass()
	if m.listed >= len(m.living) { // first_tid
		return nil, nil
	}
	for at := m.living[m.listed]; ; {
		m.pass()
		if slices.Contains(m.living, at) { // otherwise it has no number any more, and is not listed
			tids = append(tids, at)
		}
		m.listed++
		m.pass()
		i := slices.Index(m.living, at) // next_tid
		if i < 0 || i+1 == len(m.living) {
			return tids, nil
		}
		at = m.living[i+1]
	}
}
