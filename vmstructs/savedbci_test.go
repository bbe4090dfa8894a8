package vmstructs

import "testing"

// TestSavedBCI: an index in a slot is accepted only in JDK 8.
func TestSavedBCI(t *testing.T) {
	m := &Method{CodeBegin: 0x7f0000001000, CodeSize: 20}
	for _, c := range []struct {
		jdk8 bool
		slot uint64
		bci  int32
		ok   bool
	}{
		{true, 0x7f0000001013, 19, true}, {true, 19, 19, true}, {true, 20, 0, false}, {true, 0x7f0000001014, 0, false},
		{false, 0x7f0000001013, 19, true}, {false, 19, 0, false},
	} {
		vm := &VM{l: &layout{jdk8: c.jdk8}}
		if bci, ok := vm.SavedBCI(m, c.slot); bci != c.bci || ok != c.ok {
			t.Errorf("%+v: %d %v", c, bci, ok)
		}
	}
}
