package outfile

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"
)

// TestStalled: goprof gives up on a reader that does not read: after a while during a recording, and sooner at its end.
// A slow reader gets everything.
func TestStalled(t *testing.T) {
	for _, atEnd := range []bool{false, true} {
		reader, writer := io.Pipe() // nothing reads from this pipe
		p := newPatient(writer)
		p.while, p.atEnd = 20*time.Millisecond, time.Hour
		if atEnd {
			p.while, p.atEnd = time.Hour, 20*time.Millisecond
			p.endSoon()
			p.endSoon()
		}
		n, err := p.Write(make([]byte, 10))
		if n != 0 || err == nil || !strings.Contains(err.Error(), "has not read for 20ms") {
			t.Errorf("%d %v", n, err)
		}
		reader.Close() // ends the writing goroutine
	}
	reader, writer := io.Pipe()
	want := bytes.Repeat([]byte("0123456789abcdef"), 3*piece/16)
	want = append(want, "rest"...)
	got := make(chan []byte)
	go func() {
		data, _ := io.ReadAll(reader)
		got <- data
	}()
	p := newPatient(writer)
	if n, err := p.Write(want); n != len(want) || err != nil {
		t.Errorf("%d %v", n, err)
	}
	writer.Close()
	if !bytes.Equal(<-got, want) {
		t.Error("something else arrived")
	}
}
