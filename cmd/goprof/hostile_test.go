package main

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"
)

// The places of the numbers in the header of a JFR chunk: size, place of the constants, place of the metadata, ticks
// of a second. All have 8 bytes, the most significant first.
const (
	chunkSize     = 8
	chunkPools    = 16
	chunkMetadata = 24
	chunkClock    = 56
)

// hostile turns a whole JFR file into files that no recorder writes, in a folder: "hostile good.jfr folder".
func hostile(ts *testscript.TestScript, _ bool, args []string) {
	good, folder := []byte(ts.ReadFile(args[0])), ts.MkAbs(args[1])
	ts.Check(os.MkdirAll(folder, 0o700))
	with := func(at int, n uint64) []byte {
		b := bytes.Clone(good)
		binary.BigEndian.PutUint64(b[at:], n)
		return b
	}
	pools := binary.BigEndian.Uint64(good[chunkPools:])
	for name, file := range map[string][]byte{
		"chunk-without-end.jfr":    with(chunkSize, 1<<62),
		"chunk-of-less-than-0.jfr": with(chunkSize, 1<<63),
		"constants-in-header.jfr":  with(chunkPools, 3),
		"constants-beyond.jfr":     with(chunkPools, 1<<40),
		"metadata-elsewhere.jfr":   with(chunkMetadata, pools),
		"metadata-beyond.jfr":      with(chunkMetadata, 1<<62),
		"clock-stands.jfr":         with(chunkClock, 0),
		"constants-in-a-loop.jfr":  looped(good, int(pools)),
		"count-of-2-63.jfr":        endlessPools(good, int(pools)),
		"bomb.collapsed":           zipped(bytes.Repeat([]byte("a;b;"), 8<<20)),
		"bomb.pb.gz":               zipped(bytes.Repeat([]byte{0x0a, 0x00}, 16<<20)),
		"cut.gz":                   zipped(good)[:len(good)/16],
		"string-of-2-63.pb":        {0x32, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 'x'},
	} {
		ts.Check(os.WriteFile(filepath.Join(folder, name), file, 0o600))
	}
}

// looped makes the checkpoint of a chunk lead to itself. Its delta, behind size, type, start and duration, becomes 0
// or more.
func looped(good []byte, pools int) []byte {
	b := bytes.Clone(good)
	at := pools
	for range 4 { // size, type, start, duration
		at = skipNumber(b, at)
	}
	end := skipNumber(b, at)
	for i := at; i < end-1; i++ {
		b[i] = 0x80
	}
	b[at] |= 5 // forwards, into the checkpoint's own middle
	b[end-1] &= 0x7f
	return b
}

// endlessPools makes the number of a checkpoint's pools as large as possible.
func endlessPools(good []byte, pools int) []byte {
	b := bytes.Clone(good)
	at := pools
	for range 5 {
		at = skipNumber(b, at)
	}
	at++ // the kind of checkpoint
	for i := range 8 {
		b[at+i] = 0xff
	}
	b[at+8] = 0x7f
	return b
}

// skipNumber is the end of a number of 1 to 9 bytes.
func skipNumber(b []byte, at int) int {
	for i := range 9 {
		if i == 8 || b[at+i] < 0x80 {
			return at + i + 1
		}
	}
	return at
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	z, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	z.Write(b)
	z.Close()
	return out.Bytes()
}
