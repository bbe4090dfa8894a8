//go:build linux

package identity

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"goprof/profile/resource"
)

// The header of a process context (OTEP 4719), in the CPU's byte order:
//
//	0   8  "OTEL_CTX"
//	8   4  version: 2; 1 was used in development
//	12  4  bytes of the payload
//	16  8  when the context was published, by CLOCK_BOOTTIME; 0 while it is being changed
//	24  8  address of the payload
const (
	signature  = "OTEL_CTX"
	headerSize = 32
	version    = 2
)

// Limits of what is read, because the target may hold false data.
const (
	maxPayload  = 64 << 10
	maxMapLines = 1 << 16 // of /proc/PID/maps
	maxTries    = 3       // to read a context that is being changed
	maxFound    = 4       // mappings of that name
)

// Context returns the attributes that an SDK in the process has published. ok reports whether there are any.
func Context(pid int) (a resource.Attributes, ok bool) {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil, false
	}
	defer maps.Close()
	found := mappings(maps)
	if len(found) == 0 {
		return nil, false
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return nil, false
	}
	defer mem.Close()
	for _, at := range found {
		if payload, err := read(mem, at); err == nil {
			return resource.FromContext(payload)
		}
	}
	return nil, false
}

// mappings returns the addresses of the mappings that have the name of a context.
func mappings(maps io.Reader) (found []uint64) {
	lines := bufio.NewScanner(maps)
	for n := 0; n < maxMapLines && len(found) < maxFound && lines.Scan(); n++ {
		line := lines.Bytes()
		if !bytes.Contains(line, []byte(signature)) {
			continue
		}
		fields := strings.Fields(string(line))
		if len(fields) < 6 || !named(fields[5]) {
			continue
		}
		from, _, _ := strings.Cut(fields[0], "-")
		if at, err := strconv.ParseUint(from, 16, 63); err == nil {
			found = append(found, at)
		}
	}
	return found
}

func named(path string) bool {
	return strings.HasPrefix(path, "[anon_shmem:"+signature+"]") || strings.HasPrefix(path, "[anon:"+signature+"]") ||
		strings.HasPrefix(path, "/memfd:"+signature)
}

var errNoContext = errors.New("no process context")

// read reads the payload. The payload is valid only if the time of publication is the same before and after.
func read(mem io.ReaderAt, at uint64) ([]byte, error) {
	var head, again [headerSize]byte
	for range maxTries {
		if _, err := mem.ReadAt(head[:], int64(at)); err != nil {
			return nil, err
		}
		size := binary.NativeEndian.Uint32(head[12:])
		published, payload := binary.NativeEndian.Uint64(head[16:]), binary.NativeEndian.Uint64(head[24:])
		if string(head[:8]) != signature || binary.NativeEndian.Uint32(head[8:]) != version || size == 0 ||
			size > maxPayload || payload > 1<<62 {
			return nil, errNoContext
		}
		if published == 0 {
			continue
		}
		b := make([]byte, size)
		if _, err := mem.ReadAt(b, int64(payload)); err != nil {
			return nil, err
		}
		if _, err := mem.ReadAt(again[:], int64(at)); err != nil {
			return nil, err
		}
		if again == head {
			return b, nil
		}
	}
	return nil, errNoContext
}
