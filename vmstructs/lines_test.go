package vmstructs

import "testing"

func TestDecodeLines(t *testing.T) {
	for _, c := range []struct {
		name  string
		x     uint8
		bytes []byte
		want  []lineEntry
		ok    bool
	}{
		{"small steps", 1, []byte{0<<3 | 5, 4<<3 | 1, 0}, []lineEntry{{0, 5}, {4, 6}}, true},
		{"escape, zero excluded", 1, []byte{0xff, 1, 1 + 82, 0}, []lineEntry{{0, 41}}, true},
		{"escape", 0, []byte{0xff, 0, 82, 0}, []lineEntry{{0, 41}}, true},
		{"a line goes back, as at the end of a for loop", 0, []byte{0xff, 0, 82, 0xff, 22, 5, 0},
			[]lineEntry{{0, 41}, {11, 38}}, true},
		{"empty", 0, []byte{0}, []lineEntry{}, true},
		{"no end", 0, []byte{9, 9}, nil, false},
		{"nothing", 0, nil, nil, false},
		{"cut in an escape", 0, []byte{0xff, 200}, nil, false},
		{"below line 0", 0, []byte{0xff, 0, 5, 0}, nil, false},
		{"beyond 65535", 0, append([]byte{0xff, 0}, append(appendU5(nil, 2<<20, 0), 0)...), nil, false},
	} {
		got, ok := decodeLines(c.bytes, c.x)
		if ok != c.ok || len(got) != len(c.want) {
			t.Errorf("%s: %v %v", c.name, got, ok)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: entry %d is %v, want %v", c.name, i, got[i], c.want[i])
			}
		}
	}
}

func TestLineOfBCI(t *testing.T) {
	sorted := &Method{lines: []lineEntry{{0, 10}, {5, 11}, {9, 10}, {20, 14}}}
	unsorted := &Method{lines: []lineEntry{{8, 3}, {0, 1}, {4, 2}}}
	for _, c := range []struct {
		m         *Method
		bci, want int32
	}{
		{sorted, -1, 10}, {sorted, 0, 10}, {sorted, 4, 10}, {sorted, 5, 11}, {sorted, 8, 11}, {sorted, 9, 10},
		{sorted, 65535, 14}, {unsorted, 3, 1}, {unsorted, 5, 2}, {unsorted, 9, 3}, {&Method{}, 3, 0},
	} {
		if got := c.m.Line(c.bci); got != c.want {
			t.Errorf("line at %d: %d, want %d", c.bci, got, c.want)
		}
	}
}
