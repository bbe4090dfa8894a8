package otlp

import "goprof/profile/protobuf"

// The tables of ProfilesDictionary, by their field numbers.
const (
	mappingTable   = 1
	locationTable  = 2
	functionTable  = 3
	linkTable      = 4
	stringTable    = 5
	attributeTable = 6
	stackTable     = 7
	numTables      = 8
)

// dictionary holds what all parts of a message refer to by index. An entry is identified by its bytes, so none occurs
// twice. Index 0 of each table is the empty entry.
type dictionary struct {
	index [numTables]map[string]int32
	bytes [numTables][]byte
}

func newDictionary() *dictionary {
	d := &dictionary{}
	for table := mappingTable; table < numTables; table++ {
		d.index[table] = make(map[string]int32)
		d.add(table, nil)
	}
	return d
}

func (d *dictionary) add(table int, entry []byte) int32 {
	if i, known := d.index[table][string(entry)]; known {
		return i
	}
	i := int32(len(d.index[table]))
	d.index[table][string(entry)] = i
	d.bytes[table] = protobuf.Bytes(d.bytes[table], table, entry)
	return i
}

func (d *dictionary) text(s string) int32 {
	if i, known := d.index[stringTable][s]; known {
		return i
	}
	return d.add(stringTable, []byte(s))
}

// attribute returns the index of a key with a value (KeyValueAndUnit).
func (d *dictionary) attribute(key string, value []byte) int32 {
	entry := protobuf.Uint(nil, 1, uint64(d.text(key)))
	return d.add(attributeTable, protobuf.Bytes(entry, 2, value))
}

func (d *dictionary) write(to []byte) []byte {
	for _, table := range d.bytes {
		to = append(to, table...)
	}
	return to
}

func textValue(s string) []byte { return protobuf.Text(nil, 1, s) }

func intValue(n int64) []byte {
	const field, varint = 3, 0
	return protobuf.AppendUvarint([]byte{field<<3 | varint}, uint64(n)) // also 0: an empty AnyValue is not a number
}
