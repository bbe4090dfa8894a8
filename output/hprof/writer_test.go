package hprof

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"goprof/testdata/hprofread"
)

// TestWrite: another reader reads what was written, with arrays that are larger than a segment and others after them.
func TestWrite(t *testing.T) {
	const class, arrays, large = 0x1000, 0x1100, segmentSize/8 + 7
	var out bytes.Buffer
	w := NewWriter(&out, time.Unix(1, 0))
	for i, name := range []string{"a/B", "x", "y", "[La/B;", "run", "B.java", ""} {
		w.String(uint64(i+1), name)
	}
	w.LoadClass(1, class, 1)
	w.LoadClass(2, arrays, 4)
	w.Frame(Frame{ID: 9, Method: 5, Descriptor: 7, File: 6, Class: 1, Line: 3})
	w.Trace(2, 1, []uint64{9})
	w.Class(&Class{ID: class, Loader: 77, InstanceSize: 6, Statics: []Static{{2, Short, 0xfff9}},
		Fields: []Field{{2, Int}, {3, Char}}})
	w.Class(&Class{ID: arrays})
	w.StickyClass(class)
	w.Thread(0x2000, 1, 2)
	w.OnStack(0x2010, 1)
	w.JNILocal(0x2010, 1)
	w.JNIGlobal(0x2010, 0x9999)
	w.UnknownRoot(0x2000)
	for i := range uint64(3) {
		w.Instance(0x2000+16*i, class, 6)
		copy(w.Room(6), []byte{0, 0, 0, byte(i), 0, 'c'})
	}
	w.Objects(0x3000, arrays, large)
	for left := large * 8; left > 0; {
		room := w.Room(1 << 18)
		for at := 0; at < len(room); at += 8 {
			binary.BigEndian.PutUint64(room[at:], 0x2000)
		}
		left -= len(room)
	}
	w.Values(0x9000000, Byte, 3*segmentSize)
	for left := 3 * segmentSize; left > 0; {
		room := w.Room(left)
		for i := range room {
			room[i] = 7
		}
		left -= len(room)
	}
	w.Values(0x9900000, Double, 0)
	w.Instance(0x9a00000, class, 6)
	copy(w.Room(6), []byte{1, 2, 3, 4, 5, 6})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if w.Written() != int64(out.Len()) {
		t.Errorf("%d bytes written, %d there", w.Written(), out.Len())
	}
	d := hprofread.Parse(out.Bytes())
	if c := d.Classes[class]; c.Name != "a/B" || c.Count != 4 || c.Statics["x"] != 0xfff9 || c.Loader != 77 {
		t.Errorf("%+v", c)
	}
	if d.Get(0x2020, "x") != 2 || d.Get(0x2020, "y") != 'c' || d.Get(0x9a00000, "y") != 0x506 {
		t.Error("fields")
	}
	if o := d.Objects[0x3000]; o.Len != large || binary.BigEndian.Uint64(o.Data[8*(large-1):]) != 0x2000 {
		t.Error("the array of references")
	}
	if o := d.Objects[0x9000000]; o.Len != 3*segmentSize || bytes.Count(o.Data, []byte{7}) != o.Len {
		t.Error("the array of bytes")
	}
	if len(d.Objects) != 7 || len(d.Roots) != 6 || d.Threads[1] != 0x2000 || d.Traces[1][0] != "a/B.run" {
		t.Errorf("%d objects, %v, %v", len(d.Objects), d.Roots, d.Traces)
	}
}

// failing takes this number of bytes, and then fails.
type failing int

var errFull = errors.New("full")

func (f *failing) Write(p []byte) (int, error) {
	if *f -= failing(len(p)); *f < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// TestWriteFails: the first error is returned, and later writes need no memory.
func TestWriteFails(t *testing.T) {
	room := failing(3 << 20)
	w := NewWriter(&room, time.Now())
	for i := range uint64(100) {
		w.Values(i, Byte, segmentSize)
		w.Room(segmentSize)
	}
	if err := w.Close(); !errors.Is(err, errFull) || cap(w.b) > 2*segmentSize {
		t.Errorf("%v, %d bytes kept", err, cap(w.b))
	}
}
