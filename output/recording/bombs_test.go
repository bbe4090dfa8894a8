package recording

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"goprof/profile"
	"goprof/profile/protobuf"
)

// mostForABomb is how much memory the reader of a small file may allocate, including memory that it frees again.
const mostForABomb = 300 << 20

// TestBombs: a small file that unpacks to a huge one is refused, or is read with little memory.
func TestBombs(t *testing.T) {
	bombs := make(map[string][]byte)
	for name, field := range protoBombs() {
		bombs["pprof, packed, "+name] = zipped(t, append(protoHead(), bytes.Repeat(field, 20<<20/len(field))...))
		bombs["pprof, "+name] = append(protoHead(), bytes.Repeat(field, 1<<20/len(field)-9)...)
	}
	for name, nested := range nestedBombs() {
		bombs["pprof, packed, "+name] = zipped(t, append(protoHead(), nested(20<<20)...))
	}
	var lines bytes.Buffer
	for i := 0; lines.Len() < 20<<20; i++ {
		fmt.Fprintf(&lines, "%d%s 1\n", i%10, strings.Repeat(";a", 1000))
	}
	bombs["collapsed, packed"] = zipped(t, lines.Bytes())
	for name, file := range bombs {
		t.Run(name, func(t *testing.T) {
			if len(file) > 1<<20 {
				t.Fatalf("%d bytes are no small file", len(file))
			}
			path := filepath.Join(t.TempDir(), "bomb")
			if err := os.WriteFile(path, file, 0o600); err != nil {
				t.Fatal(err)
			}
			before := allocated()
			err := readWhole(path)
			if used := allocated() - before; used > mostForABomb {
				t.Errorf("%d bytes took %d MB: %v", len(file), used>>20, err)
			}
		})
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func readWhole(path string) error {
	f, err := Open(path, Options{})
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Each(func(*profile.Sample) error { return nil })
}

// protoHead returns the beginning of a profile: a type of samples, and the empty text.
func protoHead() []byte {
	return protobuf.Text(protobuf.Bytes(nil, 1, nil), 6, "")
}

// protoBombs returns fields of the outermost message of profile.proto.
func protoBombs() map[string][]byte {
	inSample := func(b []byte) []byte { return protobuf.Bytes(nil, 2, b) }
	label := protobuf.Bytes(nil, 3, nil)
	return map[string][]byte{
		"sample types": protobuf.Bytes(nil, 1, nil), "samples": inSample(nil), "mappings": protobuf.Bytes(nil, 3, nil),
		"locations": protobuf.Bytes(nil, 4, nil), "functions": protobuf.Bytes(nil, 5, nil),
		"texts": protobuf.Text(nil, 6, ""), "comments": protobuf.Packed(nil, 13, make([]int64, 100)),
		"a label each": inSample(label), "labels": inSample(bytes.Repeat(label, 50)),
		"values": inSample(protobuf.Packed(nil, 2, make([]int64, 100))),
		"frames": inSample(protobuf.Packed(nil, 1, make([]int64, 100))),
	}
}

// nestedBombs returns messages, each with as many fields as fit.
func nestedBombs() map[string]func(size int) []byte {
	return map[string]func(int) []byte{
		"labels of one sample": func(size int) []byte {
			return protobuf.Bytes(nil, 2, bytes.Repeat(protobuf.Bytes(nil, 3, nil), size/2))
		},
		"frames of one sample": func(size int) []byte {
			return protobuf.Bytes(nil, 2, protobuf.Packed(nil, 1, make([]int64, size)))
		},
		"lines of one location": func(size int) []byte {
			return protobuf.Bytes(nil, 4, bytes.Repeat(protobuf.Bytes(nil, 4, nil), size/2))
		},
	}
}
