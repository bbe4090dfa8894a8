package resource

import "goprof/profile/protobuf"

// maxFields bounds the fields of a process context.
const maxFields = 1000

// FromContext reads a ProcessContext (opentelemetry.proto.processcontext.v1development), which SDKs publish for readers
// outside. It keeps values that are texts, numbers and booleans, but not lists and maps. The bytes come from the
// target: if they are not such a message, the result is empty.
func FromContext(message []byte) (a Attributes, ok bool) {
	fields := 0
	err := protobuf.Each(message, func(f protobuf.Field) bool {
		switch f.ID {
		case 1: // Resource
			protobuf.Each(f.Data, func(f protobuf.Field) bool {
				if fields++; f.ID == 1 {
					pair(&a, f.Data)
				}
				return fields < maxFields
			})
		}
		fields++
		return fields < maxFields
	})
	return a, err == nil && len(a) > 0
}

// pair reads a KeyValue with its AnyValue.
func pair(to *Attributes, data []byte) {
	var key string
	var value []byte
	protobuf.Each(data, func(f protobuf.Field) bool {
		switch f.ID {
		case 1:
			key = string(f.Data[:min(len(f.Data), MaxKey)])
		case 2:
			value = f.Data
		}
		return true
	})
	protobuf.Each(value, func(f protobuf.Field) bool {
		switch f.ID {
		case 1:
			to.Set(key, string(f.Data[:min(len(f.Data), MaxText+4)]))
		case 2:
			to.Set(key, map[bool]string{false: "false", true: "true"}[f.Number != 0])
		case 3:
			to.SetInt(key, int64(f.Number))
		}
		return true
	})
}
