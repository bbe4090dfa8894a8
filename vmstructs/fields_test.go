package vmstructs

import "testing"

// TestFieldFlags: the numbers of a field's flags differ between releases. The words after a field depend on its flags.
func TestFieldFlags(t *testing.T) {
	const flag = "FieldInfo::FieldFlags::_ff_"
	for release, c := range map[string]struct {
		ints     map[string]int32
		flags    byte   // of an injected field with an initial value
		optional []byte // the words after the flags
	}{
		"21 to 27": {map[string]int32{flag + "initialized": 0, flag + "injected": 1, flag + "generic": 2,
			flag + "contended": 4}, 1<<0 | 1<<1, []byte{7}},
		"28": {map[string]int32{flag + "null_marker": 2, flag + "initialized": 3, flag + "injected": 4,
			flag + "generic": 5, flag + "contended": 7}, 1<<2 | 1<<3 | 1<<4, []byte{7, 8}},
		"not exported": {nil, 1<<0 | 1<<1, []byte{7}},
	} {
		f := (&resolver{t: &tables{ints: c.ints}}).fieldFlags()
		field := append([]byte{40, 41, 42, 43, c.flags + 1}, c.optional...)
		s := stream{b: append(field, 50, 51, 52, 53, 1), x: 1}
		if got, flags := s.nextField(&f); got != (rawField{39, 40, 41, 42}) || flags&f.injected == 0 {
			t.Errorf("%s: %+v, flags %#x", release, got, flags)
		}
		if got, flags := s.nextField(&f); got != (rawField{49, 50, 51, 52}) || flags != 0 || s.bad {
			t.Errorf("%s: the next one is %+v, flags %#x", release, got, flags)
		}
	}
}
