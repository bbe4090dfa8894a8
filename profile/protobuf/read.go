package protobuf

import (
	"encoding/binary"
	"errors"
)

// ErrBad is returned for bytes that are not a message.
var ErrBad = errors.New("the bytes are no message of Protocol Buffers")

// Field is one field of a message. Number is for the types varint, fixed32 and fixed64, and Data for all others. Data
// is a part of the input of Each.
type Field struct {
	ID     int
	Number uint64
	Data   []byte
}

// Each calls visit for each field of a message, until visit returns false.
func Each(message []byte, visit func(Field) bool) error {
	for len(message) > 0 {
		key, n := binary.Uvarint(message)
		if n <= 0 || key>>3 == 0 || key>>3 > 1<<29 {
			return ErrBad
		}
		message = message[n:]
		f := Field{ID: int(key >> 3)}
		if n = f.value(int(key&7), message); n < 0 {
			return ErrBad
		}
		message = message[n:]
		if !visit(f) {
			return nil
		}
	}
	return nil
}

// value reads a field's value, and returns its length. It is -1 if the value is malformed.
func (f *Field) value(kind int, from []byte) int {
	switch {
	case kind == varint:
		number, n := binary.Uvarint(from)
		if n <= 0 {
			return -1
		}
		f.Number = number
		return n
	case kind == fixed64 && len(from) >= 8:
		f.Number = binary.LittleEndian.Uint64(from)
		return 8
	case kind == fixed32 && len(from) >= 4:
		f.Number = uint64(binary.LittleEndian.Uint32(from))
		return 4
	case kind == counted:
		size, n := binary.Uvarint(from)
		if n <= 0 || size > uint64(len(from)-n) {
			return -1
		}
		f.Data = from[n : n+int(size)]
		return n + int(size)
	}
	return -1
}
