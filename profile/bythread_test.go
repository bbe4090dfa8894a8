package profile

import "testing"

// TestByThread: threads that differ in any field are two, even in the same slot.
func TestByThread(t *testing.T) {
	var b ByThread[int]
	threads := []Thread{{}, {TID: 1}, {TID: 1, Name: "a"}, {TID: 1, Name: "a", JavaName: "b"}, {TID: 1, Virtual: true},
		{TID: 1 + len(b.slots)}, {TID: 1, JavaID: 8}}
	for i := range threads {
		if _, known := b.Get(&threads[i]); known {
			t.Errorf("%+v is known", threads[i])
		}
		b.Put(&threads[i], i)
		same := threads[i]
		if v, known := b.Get(&same); !known || v != i {
			t.Errorf("%+v: %d, %v", same, v, known)
		}
	}
	if b.Clear(); b != (ByThread[int]{}) {
		t.Error("something is left")
	}
}
