// Package protobuf writes and reads messages of Protocol Buffers field by field.
//
// The formats that goprof sends have few messages. Generated code for them, with its runtime, would make the program 2
// MB larger. Tests decode the output of this package with generated code. Input is not trusted: Each reads every byte
// at most once, and no length leads it out of the message.
package protobuf

import "encoding/binary"

// The wire types.
const (
	varint  = 0
	fixed64 = 1
	counted = 2
	fixed32 = 5
)

func tag(b []byte, field, kind int) []byte {
	return binary.AppendUvarint(b, uint64(field)<<3|uint64(kind))
}

// Uint appends a number of type int32, int64, uint64, bool or enum. It does not write 0, which is a reader's default.
func Uint(b []byte, field int, n uint64) []byte {
	if n == 0 {
		return b
	}
	return binary.AppendUvarint(tag(b, field, varint), n)
}

func Fixed64(b []byte, field int, n uint64) []byte {
	if n == 0 {
		return b
	}
	return binary.LittleEndian.AppendUint64(tag(b, field, fixed64), n)
}

// String appends a text. It does not write an empty text.
func String(b []byte, field int, s string) []byte {
	if s == "" {
		return b
	}
	return Text(b, field, s)
}

// Text appends a text, even an empty one: an entry of a list.
func Text(b []byte, field int, s string) []byte {
	return append(binary.AppendUvarint(tag(b, field, counted), uint64(len(s))), s...)
}

// Bytes appends bytes or an encoded message, even empty ones.
func Bytes(b []byte, field int, data []byte) []byte {
	return append(binary.AppendUvarint(tag(b, field, counted), uint64(len(data))), data...)
}

func Packed[N int32 | int64 | uint64](b []byte, field int, list []N) []byte {
	if len(list) == 0 {
		return b
	}
	size := 0
	for _, n := range list {
		size += uvarintSize(uint64(int64(n)))
	}
	b = binary.AppendUvarint(tag(b, field, counted), uint64(size))
	for _, n := range list {
		b = binary.AppendUvarint(b, uint64(int64(n)))
	}
	return b
}

func PackedFixed64(b []byte, field int, list []uint64) []byte {
	if len(list) == 0 {
		return b
	}
	b = binary.AppendUvarint(tag(b, field, counted), uint64(8*len(list)))
	for _, n := range list {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return b
}

// AppendUvarint appends a number without a tag.
func AppendUvarint(b []byte, n uint64) []byte { return binary.AppendUvarint(b, n) }

func uvarintSize(n uint64) int {
	size := 1
	for ; n >= 0x80; n >>= 7 {
		size++
	}
	return size
}
