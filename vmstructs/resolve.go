package vmstructs

import (
	"cmp"
	"encoding/binary"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// offset is the offset of a field in its object, or absent.
type offset int32

const absent offset = -1

// maxOffset bounds the offset of an instance field. The largest type that is read, JavaThread, has about 3 KB.
const maxOffset = 1 << 16

func (o offset) ok() bool { return o >= 0 }

// u64, u32 and so on return the field in the bytes of its object. b must have at least as many bytes as span returns.
func (o offset) u64(b []byte) uint64 { return binary.LittleEndian.Uint64(b[o:]) }
func (o offset) u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b[o:]) }
func (o offset) i32(b []byte) int32  { return int32(binary.LittleEndian.Uint32(b[o:])) }
func (o offset) u16(b []byte) uint16 { return binary.LittleEndian.Uint16(b[o:]) }

// sized is a field whose width differs between releases.
type sized struct {
	offset
	width uint8 // 1, 2, 4 or 8
}

// signed reads the field with sign extension.
func (s sized) signed(b []byte) int64 {
	switch s.width {
	case 1:
		return int64(int8(b[s.offset]))
	case 2:
		return int64(int16(s.u16(b)))
	case 4:
		return int64(s.i32(b))
	}
	return int64(s.u64(b))
}

// unsigned reads the field without sign extension.
func (s sized) unsigned(b []byte) uint64 {
	switch s.width {
	case 1:
		return uint64(b[s.offset])
	case 2:
		return uint64(s.u16(b))
	case 4:
		return uint64(s.u32(b))
	}
	return s.u64(b)
}

// span returns the number of bytes of an object that must be read to have all of these fields.
func span(fields ...offset) int {
	n := 0
	for _, f := range fields {
		if f.ok() {
			n = max(n, int(f)+8)
		}
	}
	return n
}

// resolver maps names to offsets. It records missing fields, by capability.
type resolver struct {
	t       *tables
	missing map[string][]string
	odd     map[string]string // fields that exist in an unexpected form, with that form
}

// lookup finds the first of the alternatives in "Type.field|Type.field" that exists.
func (r *resolver) lookup(names string, static bool) (tableField, bool) {
	return r.find(names, static, r.tooNarrow)
}

// find is lookup with another function to decide which instance fields are too narrow.
func (r *resolver) find(names string, static bool, narrow func(string, tableField) bool) (tableField, bool) {
	for name := range strings.SplitSeq(names, "|") {
		typ, field, _ := strings.Cut(name, ".") // types have no dots, fields may
		f, ok := r.t.fields[fieldName{typ, field}]
		switch {
		case !ok:
		case f.static != static, !static && f.offset >= maxOffset:
			r.odd[name] = "elsewhere"
		case !static && narrow(name, f):
			r.odd[name] = "a " + f.typ
		default:
			return f, true
		}
	}
	return tableField{}, false
}

// lost records that these fields of a capability are missing. With an empty capability it does nothing.
func (r *resolver) lost(capability, names string) {
	if capability != "" {
		for name := range strings.SplitSeq(names, "|") {
			if how := r.odd[name]; how != "" {
				names += " (here " + how + ")"
			}
		}
		r.missing[capability] = append(r.missing[capability], names)
	}
}

// field finds an instance field. If there is none, the capability is missing.
func (r *resolver) field(capability, names string) offset {
	f, ok := r.lookup(names, false)
	if !ok {
		r.lost(capability, names)
		return absent
	}
	return offset(f.offset)
}

// sized finds an instance field and its width, by its C++ type. A field of another type counts as missing.
func (r *resolver) sized(capability, names string) sized {
	f, ok := r.find(names, false, func(string, tableField) bool { return false })
	if !ok {
		r.lost(capability, names)
		return sized{absent, 0}
	}
	width, known := r.knownWidth(f.typ)
	if !known {
		r.lost(capability, names+" (here a "+f.typ+")")
		return sized{absent, 0}
	}
	return sized{offset(f.offset), width}
}

// fill makes a layout from the tags of its fields. The tag of an offset or a sized names an instance field. The tag of
// a uint64 names a static field, or a type, whose size it is. The tag of an int32 names a constant. "T._a > U._b" is
// the field U._b in the member T._a. "class X" is the variable with the JVM's class X. % stands for the tag "prefix" of
// the layout.
//
// If there is no such field, an offset is absent and a number is 0, or the value of the tag "else". With the key
// "need", a capability is then missing: that of the tag "cap", otherwise that of the call. Fields without a tag are not
// changed.
func fill[T any](r *resolver, capability string) (l T) {
	r.fill(reflect.ValueOf(&l).Elem(), capability, "")
	return l
}

func (r *resolver) fill(l reflect.Value, capability, prefix string) {
	for i := range l.NumField() {
		f, tag := l.Field(i), l.Type().Field(i).Tag
		lost := ""
		names, ok := tag.Lookup("vm")
		if !ok {
			if names, ok = tag.Lookup("need"); ok {
				lost = cmp.Or(tag.Get("cap"), capability)
			}
		}
		names = strings.ReplaceAll(names, "%", prefix)
		switch to := reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Interface().(type) {
		case *offset:
			if ok {
				*to = r.member(lost, names)
			}
		case *sized:
			if ok {
				*to = r.sized(lost, names)
			}
		case *uint64:
			if class, found := strings.CutPrefix(names, "class "); found {
				*to = r.static(lost, wellKnown(class))
			} else if strings.Contains(names, ".") {
				*to = r.static(lost, names)
			} else if ok {
				*to = r.size(lost, names)
			}
		case *int32:
			if ok {
				otherwise, _ := strconv.ParseInt(tag.Get("else"), 10, 32)
				*to = r.int(names, int32(otherwise))
			}
		default:
			if f.Kind() != reflect.Struct && ok {
				panic("vmstructs: a tag on a field of a type that fill does not know")
			}
			if f.Kind() == reflect.Struct {
				r.fill(f, cmp.Or(tag.Get("cap"), capability), tag.Get("prefix"))
			}
		}
	}
}

// member finds an instance field, which may be nested in a member.
func (r *resolver) member(capability, names string) (sum offset) {
	for part := range strings.SplitSeq(names, " > ") {
		at := r.field(capability, part)
		if !at.ok() {
			return absent
		}
		sum += at
	}
	return sum
}

// static finds the address of a static field, 0 if there is none.
func (r *resolver) static(capability, names string) uint64 {
	f, ok := r.lookup(names, true)
	if !ok || f.addr == 0 {
		r.lost(capability, names)
		return 0
	}
	return f.addr
}

func (r *resolver) size(capability, typ string) uint64 {
	n := r.t.sizes[typ]
	if n == 0 || n > maxOffset {
		r.lost(capability, "sizeof "+typ)
		return 0
	}
	return n
}

// int returns a constant. otherwise is its value in all releases that do not export it.
func (r *resolver) int(name string, otherwise int32) int32 {
	if v, ok := r.t.ints[name]; ok {
		return v
	}
	return otherwise
}

// report lists the missing fields: "thread names: JavaThread._threadObj".
func (r *resolver) report() []string {
	var out []string
	for capability, names := range r.missing {
		out = append(out, capability+": "+strings.Join(names, ", "))
	}
	slices.Sort(out)
	return out
}
