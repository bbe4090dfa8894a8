package timeline

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"

	"goprof/output"
)

// JSON writes large JSON piece by piece. Flush returns the first error of all writes.
type JSON struct {
	w     *bufio.Writer
	space [32]byte
}

func NewJSON(to io.Writer) *JSON { return &JSON{w: bufio.NewWriterSize(to, 64<<10)} }

func (j *JSON) Raw(text string) { j.w.WriteString(text) }

func (j *JSON) Int(n int64) { j.w.Write(strconv.AppendInt(j.space[:0], n, 10)) }

// Text writes a string. Characters that a page or a terminal could interpret become '?', or are escaped.
func (j *JSON) Text(s string) { j.Any(output.Printable(s)) }

// Any writes any value that encoding/json can encode.
func (j *JSON) Any(v any) {
	data, err := json.Marshal(v)
	if err != nil { // only types that JSON lacks could cause that
		data = []byte("null")
	}
	j.w.Write(data)
}

// List writes n values between brackets.
func (j *JSON) List(n int, value func(i int)) {
	j.w.WriteByte('[')
	for i := range n {
		if i > 0 {
			j.w.WriteByte(',')
		}
		value(i)
	}
	j.w.WriteByte(']')
}

// Ms writes nanoseconds as milliseconds, to the microsecond.
func (j *JSON) Ms(ns int64) {
	us := ns / 1000
	if us < 0 {
		j.w.WriteByte('-')
		us = -us
	}
	j.Int(us / 1000)
	if rest := us % 1000; rest != 0 {
		digits := strconv.AppendInt(j.space[:0], 1000+rest, 10)
		digits[0] = '.'
		j.w.Write(digits)
	}
}

// Flush writes the contents of the buffer.
func (j *JSON) Flush() error { return j.w.Flush() }
