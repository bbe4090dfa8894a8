package maybe

import "testing"

func TestValue(t *testing.T) {
	var none Value[int]
	if v, ok := none.Get(); ok || v != 0 || none.IsKnown() || none.Or(7) != 7 || none.String() != "not known" {
		t.Errorf("%v", none)
	}
	zero := Known(0)
	if v, ok := zero.Get(); !ok || v != 0 || zero.Or(7) != 0 || zero.String() != "0" || zero == none {
		t.Errorf("%v", zero)
	}
	if If(3, false) != none || If(3, true) != Known(3) {
		t.Error("If")
	}
}
