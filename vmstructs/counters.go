package vmstructs

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// The counters that jstat reads lie in one area, which the JVM also maps from a file (runtime/perfMemory.hpp). goprof
// reads the JVM's memory and not the file, which is in the target's /tmp, where another file may have replaced it. The
// JVM adds entries, and never removes one.
//
//	PerfDataPrologue   magic 0, byte order 4, ..., used 8, overflow 12, mod time 16, entry offset 24, entries 28
//	PerfDataEntry      length 0, name 4, vector length 8, type 12, flags 13, units 14, variability 15, data 16

const (
	perfVectorOffset = 8
	perfTypeOffset   = 12
	maxCounters      = 1 << 12 // a JVM has some 250
	maxCounterText   = 1 << 10 // bytes of a text or a name
)

// counterArea is the area with the counters, as it was last read.
type counterArea struct {
	start   uint64
	bytes   []byte
	at      map[string]perfCounter
	entries uint32 // the number of entries that were indexed
	partial bool   // one entry was not complete then
}

// perfCounter is the place of a counter's value in the area.
type perfCounter struct {
	at, length int // length 0: a number
}

// Counters are the JVM's counters at one moment.
type Counters struct{ area *counterArea }

// Counters reads all counters. ok is false for a JVM without counters (-XX:-UsePerfData). The result is valid until the
// next call.
func (h *Health) Counters() (c Counters, ok bool) {
	if !h.perf.read(h.vm) {
		return c, false
	}
	return Counters{&h.perf}, true
}

// read reads the area, and finds its entries. It returns false if the JVM has no such area.
func (a *counterArea) read(vm *VM) bool {
	if vm.l.perfStart == 0 || vm.l.perfCapacity == 0 {
		return false
	}
	start, err1 := vm.mem.Ptr(vm.l.perfStart)
	size, err2 := vm.mem.Ptr(vm.l.perfCapacity)
	if err1 != nil || err2 != nil || start == 0 || size < perfPrologue || size > maxPerf {
		return false
	}
	if uint64(len(a.bytes)) != size {
		*a = counterArea{bytes: make([]byte, size)}
	}
	a.start = start
	return vm.mem.Bytes(start, a.bytes) == nil && a.index()
}

// index finds the entries, unless their number is unchanged. The JVM counts an entry before it has filled in the entry
// (runtime/perfMemory.cpp, PerfMemory::alloc).
func (a *counterArea) index() bool {
	if len(a.bytes) < perfPrologue || offset(0).u32(a.bytes) != perfMagic {
		return false
	}
	entries := offset(perfEntries).u32(a.bytes)
	if a.at != nil && a.entries == entries && !a.partial {
		return true
	}
	a.at, a.entries, a.partial = map[string]perfCounter{}, entries, true
	at := int(offset(perfEntryOffset).u32(a.bytes))
	for range min(entries, maxCounters) {
		if at < perfPrologue || at > len(a.bytes)-perfEntry {
			return true
		}
		length, name, c, ok := parseCounter(a.bytes[at:])
		if !ok {
			return true
		}
		if name != "" {
			c.at += at
			a.at[name] = c
		}
		at += length
	}
	a.partial = false
	return true
}

// parseCounter reads one entry. The name is empty if the entry cannot be used.
func parseCounter(entry []byte) (length int, name string, c perfCounter, ok bool) {
	size := offset(0).u32(entry)
	if size < perfEntry || uint64(size) > uint64(len(entry)) {
		return 0, "", c, false
	}
	length = int(size)
	entry = entry[:length]
	nameAt, dataAt := offset(perfNameOffset).u32(entry), offset(perfDataOffset).u32(entry)
	if uint64(nameAt) >= uint64(length) || uint64(dataAt) >= uint64(length) {
		return length, "", c, true
	}
	text := entry[nameAt:min(length, int(nameAt)+maxCounterText)]
	end := bytes.IndexByte(text, 0)
	if end <= 0 {
		return length, "", c, true
	}
	c = perfCounter{at: int(dataAt), length: int(offset(perfVectorOffset).u32(entry))}
	room := length - int(dataAt)
	switch kind := entry[perfTypeOffset]; {
	case kind == 'J' && c.length == 0 && room >= 8:
	case kind == 'B' && c.length > 0 && c.length <= min(room, maxCounterText):
	default:
		return length, "", c, true
	}
	return length, string(text[:end]), c, true
}

// Long returns a counter that is a number.
func (c Counters) Long(name string) (int64, bool) {
	if c.area == nil {
		return 0, false
	}
	k, ok := c.area.at[name]
	if !ok || k.length != 0 {
		return 0, false
	}
	return int64(word(c.area.bytes[k.at:])), true
}

// Text returns a counter that is a text, as valid UTF-8.
func (c Counters) Text(name string) (string, bool) {
	if c.area == nil {
		return "", false
	}
	k, ok := c.area.at[name]
	if !ok || k.length == 0 {
		return "", false
	}
	text, _, _ := strings.Cut(string(c.area.bytes[k.at:k.at+k.length]), "\x00")
	return cleanText(text), true
}

// Names lists the counters, in no particular order.
func (c Counters) Names() (names []string) {
	if c.area != nil {
		names = slices.Collect(maps.Keys(c.area.at))
	}
	return names
}
