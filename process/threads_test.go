//go:build linux

package process

import (
	"errors"
	"slices"
	"testing"
)

// TestIncompleteLists: the kernel leaves out live threads if another one ends while it lists them. Nothing is left out
// of the result.
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
