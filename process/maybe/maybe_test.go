package maybe

import (
	"encoding/json"
	"testing"
)

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
	for _, want := range []Value[int]{none, zero, Known(-5)} {
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got := Known(99)
		if err := json.Unmarshal(b, &got); err != nil || got != want {
			t.Errorf("%s: %v, %v", b, got, err)
		}
	}
	if err := json.Unmarshal([]byte(`"x"`), &none); err == nil {
		t.Error("a text for a number")
	}
}
