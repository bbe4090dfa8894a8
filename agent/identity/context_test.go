//go:build linux

package identity

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"goprof/profile/protobuf"
	"goprof/profile/resource"
)

// payload is a ProcessContext as an SDK writes it.
func payload(service string) []byte {
	text := func(key, value string) []byte {
		pair := protobuf.Text(nil, 1, key)
		return protobuf.Bytes(nil, 1, protobuf.Bytes(pair, 2, protobuf.Text(nil, 1, value)))
	}
	of := append(text("service.name", service), text("deployment.environment.name", "prod\n")...)
	number := protobuf.Bytes(protobuf.Text(nil, 1, "shard"), 2, protobuf.Uint(nil, 3, 7))
	return protobuf.Bytes(nil, 1, append(of, protobuf.Bytes(nil, 1, number)...))
}

func header(size, version uint32, published, at uint64) []byte {
	b := append([]byte(signature), make([]byte, headerSize-8)...)
	binary.NativeEndian.PutUint32(b[8:], version)
	binary.NativeEndian.PutUint32(b[12:], size)
	binary.NativeEndian.PutUint64(b[16:], published)
	binary.NativeEndian.PutUint64(b[24:], at)
	return b
}

// TestContextOfAProcess: a process publishes a context by the protocol. goprof reads it from outside. Here the
// process is the test itself.
func TestContextOfAProcess(t *testing.T) {
	fd, err := unix.MemfdCreate(signature, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Ftruncate(fd, 4096); err != nil {
		t.Fatal(err)
	}
	page, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	unix.Close(fd)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(page)
	if _, ok := Context(os.Getpid()); ok {
		t.Error("a page of zeros is a context")
	}
	data := payload("shop")
	copy(page[headerSize:], data)
	copy(page, header(uint32(len(data)), version, 77, uint64(uintptr(unsafe.Pointer(&page[headerSize])))))
	var a resource.Attributes
	a.Set("shard", "mine")
	Enrich(os.Getpid(), &a)
	runtime.KeepAlive(page)
	if a.Get(resource.ServiceName) != "shop" || a.Get("deployment.environment.name") != "prod " ||
		a.Get("shard") != "mine" {
		t.Errorf("%+v", a)
	}
}

// lying is memory from address 0 on. If change is set, the memory changes with each read.
type lying struct {
	data   []byte
	change func(data []byte)
}

func (l *lying) ReadAt(b []byte, at int64) (int, error) {
	if at < 0 || at > int64(len(l.data)) {
		return 0, errors.New("nothing is there")
	}
	n := copy(b, l.data[at:])
	if l.change != nil {
		l.change(l.data)
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// TestContextsThatLie: whatever a header says, goprof reads a bounded amount, and never takes half of a context.
func TestContextsThatLie(t *testing.T) {
	data := payload("shop")
	size := uint32(len(data))
	for name, c := range map[string]struct {
		head   []byte
		change func([]byte)
		isGood bool
	}{
		"good":                  {header(size, version, 1, headerSize), nil, true},
		"other version":         {header(size, 1, 1, headerSize), nil, false},
		"being changed":         {header(size, version, 0, headerSize), nil, false},
		"too long":              {header(1<<31, version, 1, headerSize), nil, false},
		"longer than memory":    {header(maxPayload, version, 1, headerSize), nil, false},
		"elsewhere":             {header(size, version, 1, 1<<63), nil, false},
		"at no address":         {header(size, version, 1, 1<<40), nil, false},
		"empty":                 {header(0, version, 1, headerSize), nil, false},
		"changes all the time":  {header(size, version, 1, headerSize), func(b []byte) { b[16]++ }, false},
		"no signature":          {append([]byte("OTEL_CTY"), header(size, version, 1, headerSize)[8:]...), nil, false},
		"cut off in the header": {header(size, version, 1, headerSize)[:20], nil, false},
	} {
		mem := &lying{data: c.head, change: c.change}
		if len(c.head) == headerSize {
			mem.data = append(slices.Clone(c.head), data...)
		}
		got, err := read(mem, 0)
		if (err == nil) != c.isGood {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestMappings(t *testing.T) {
	text := `7f0000000000-7f0000001000 rw-p 00000000 00:01 7 /memfd:OTEL_CTX (deleted)
7f0000002000-7f0000003000 rw-p 00000000 00:00 0 [anon:OTEL_CTX]
7f0000004000-7f0000005000 rw-p 00000000 00:01 0 [anon_shmem:OTEL_CTX]
7f0000006000-7f0000007000 r--p 00000000 08:01 9 /tmp/OTEL_CTX
7f0000008000-7f0000009000 r--p 00000000 08:01 9 /lib/x.so
` + strings.Repeat("7f000000a000-7f000000b000 rw-p 00000000 00:00 0 [anon:OTEL_CTX]\n", 100)
	got := mappings(strings.NewReader(text))
	if !slices.Equal(got, []uint64{0x7f0000000000, 0x7f0000002000, 0x7f0000004000, 0x7f000000a000}) {
		t.Errorf("%x", got)
	}
}

func FuzzContext(f *testing.F) {
	f.Add(payload("shop"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, _ := resource.FromContext(data)
		if len(a) > resource.MaxAttributes {
			t.Errorf("%d attributes", len(a))
		}
	})
}
