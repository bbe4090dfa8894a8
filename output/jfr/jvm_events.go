package jfr

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"goprof/profile"
)

// The JVM's own counters, written as events of the JDK's recorder: collections, safepoints, compilations, code cache,
// classes. Viewers have pages and rules for them. The types have only the fields that goprof can know. That is allowed:
// readers find fields by their names in the file's own metadata.

// Configuration is how a JVM is set up. It stands in every chunk.
type Configuration struct {
	Young, Old                                   string // collectors, as jdk.types.GCName has them
	Parallel, Concurrent                         int    // threads of the collector
	Dynamic, ExplicitConcurrent, ExplicitRefused bool
	HeapMax, HeapInitial                         uint64
	Compilers                                    int // threads
	Tiered                                       bool
	CodeReserved                                 uint64
}

// SetConfiguration says how the JVM is set up.
func (w *Writer) SetConfiguration(c Configuration) {
	w.facts.config = &c
	w.again(func() { w.facts.writeConfiguration(w) })
}

func (f *facts) writeConfiguration(w *Writer) {
	c := f.config
	if c == nil {
		return
	}
	w.event(typeGCConfiguration, w.start.Ticks)
	w.words32(w.word(typeGCName, c.Young), w.word(typeGCName, c.Old), int64(c.Parallel), int64(c.Concurrent))
	for _, v := range []bool{c.Dynamic, c.ExplicitConcurrent, c.ExplicitRefused} {
		w.body = appendBool(w.body, v)
	}
	w.end()
	w.event(typeHeapConfiguration, w.start.Ticks)
	w.sizes(c.HeapMax, c.HeapInitial)
	w.end()
	w.event(typeCompilerConfiguration, w.start.Ticks)
	w.words32(int64(c.Compilers))
	w.body = appendBool(w.body, c.Tiered)
	w.end()
	w.event(typeCodeCacheConfiguration, w.start.Ticks)
	w.sizes(c.CodeReserved)
	w.end()
}

// Collection is a collection of the heap, or a pause of one.
type Collection struct {
	Number      int64
	Name, Cause string // "G1New", "G1 Evacuation Pause"; empty: not known
	Pause       string // what JVMs call the pause; empty: the collection ran beside the program
	Part        bool   // a pause of a collection that otherwise runs beside the program
	Young, Old  bool   // what it collected, if that is known
	Length      time.Duration
}

// Collection writes one that began at a moment.
func (w *Writer) Collection(begin profile.Instant, c Collection) error {
	if err := w.at(begin); err != nil {
		return err
	}
	length := max(int64(c.Length), 0)
	if !c.Part {
		paused := length
		if c.Pause == "" {
			paused = 0
		}
		w.event(typeGarbageCollection, begin.Ticks)
		w.numbers(length)
		w.words32(c.Number, w.word(typeGCName, c.Name), w.word(typeGCCause, c.Cause))
		w.numbers(paused, paused)
		w.end()
		if c.Young || c.Old {
			typ := typeYoungCollection
			if c.Old {
				typ = typeOldCollection
			}
			w.event(typ, begin.Ticks)
			w.numbers(length)
			w.words32(c.Number)
			w.end()
		}
	}
	if c.Pause != "" {
		w.event(typeGCPause, begin.Ticks)
		w.numbers(length, 0) // no thread
		w.words32(c.Number)
		w.texts(c.Pause)
		w.end()
	}
	return nil
}

// Heap writes how full the heap is after a collection.
func (w *Writer) Heap(at profile.Instant, number int64, used, committed, reserved uint64) error {
	if err := w.at(at); err != nil {
		return err
	}
	w.event(typeHeapSummary, at.Ticks)
	w.words32(number, w.word(typeGCWhen, "After GC"))
	w.sizes(committed, reserved, used)
	w.end()
	return nil
}

// Safepoint writes a safepoint that began at a moment: how long it took until all threads had come to rest, and how
// long it was altogether.
func (w *Writer) Safepoint(begin profile.Instant, number int64, sync, length time.Duration) error {
	if err := w.at(begin); err != nil {
		return err
	}
	w.event(typeSafepointBegin, begin.Ticks)
	w.numbers(max(int64(sync), 0), number)
	w.end()
	w.event(typeSafepointEnd, begin.Ticks+max(int64(length), 0))
	w.numbers(0, number)
	w.end()
	return nil
}

// Compiled is what compilers have done since the JVM began.
type Compiled struct {
	Methods, OnStack, Bailouts, Invalidated   uint64
	MethodBytes, OnStackBytes, Size, CodeSize uint64
	Time                                      time.Duration
}

// Compiled writes what compilers have done.
func (w *Writer) Compiled(at profile.Instant, c Compiled) error {
	if err := w.at(at); err != nil {
		return err
	}
	w.event(typeCompilerStatistics, at.Ticks)
	for _, n := range []uint64{c.Methods + c.OnStack, c.Bailouts, c.Invalidated, c.OnStack, c.Methods} {
		w.words32(int64(min(n, math.MaxInt32)))
	}
	w.sizes(c.OnStackBytes, c.MethodBytes, c.Size, c.CodeSize, uint64(c.Time.Milliseconds()))
	w.end()
	return nil
}

// CodeHeap writes how many bytes of a part of the code cache are free, and how often there was no room.
func (w *Writer) CodeHeap(at profile.Instant, name string, free, refused uint64) error {
	if err := w.at(at); err != nil {
		return err
	}
	w.event(typeCodeCacheStatistics, at.Ticks)
	w.words32(w.word(typeCodeBlobType, name))
	w.sizes(free)
	w.words32(int64(min(refused, math.MaxInt32)))
	w.end()
	return nil
}

// CPULoad writes which part of the machine's CPUs the JVM has used in its own code and in the kernel, and which part is
// used altogether: 0 to 1.
func (w *Writer) CPULoad(at profile.Instant, user, kernel, machine float64) error {
	if err := w.at(at); err != nil {
		return err
	}
	w.event(typeCPULoad, at.Ticks)
	for _, part := range []float64{user, kernel, machine} {
		w.body = binary.BigEndian.AppendUint32(w.body, math.Float32bits(float32(min(max(part, 0), 1))))
	}
	w.end()
	return nil
}

// Classes writes how many classes were loaded and unloaded since the JVM began.
func (w *Writer) Classes(at profile.Instant, loaded, unloaded uint64) error {
	if err := w.at(at); err != nil {
		return err
	}
	w.event(typeClassLoadingStatistics, at.Ticks)
	w.sizes(loaded, unloaded)
	w.end()
	return nil
}

func (w *Writer) sizes(all ...uint64) {
	for _, n := range all {
		w.body = appendInt(w.body, min(n, math.MaxInt64))
	}
}

// words32 appends numbers of 32 bits, and keys.
func (w *Writer) words32(all ...int64) {
	for _, n := range all {
		w.body = appendInt32(w.body, int32(n))
	}
}

// words are constants that are one word: they stay from chunk to chunk. Key 0 is none.
type words map[typeID][]string

// maxWords bounds those of a type: a target's memory may be anything.
const maxWords = 1 << 8

// word is the key of a word.
func (w *Writer) word(typ typeID, text string) int64 {
	if text == "" {
		return 0
	}
	if w.words == nil {
		w.words = words{}
	}
	i := slices.Index(w.words[typ], text)
	if i < 0 {
		if i = len(w.words[typ]); i >= maxWords {
			return 0
		}
		w.words[typ] = append(w.words[typ], text)
	}
	return int64(i + 1)
}

func (all words) constants() (lists []constantList) {
	for _, typ := range []typeID{typeGCName, typeGCCause, typeGCWhen, typeCodeBlobType} {
		if texts := all[typ]; len(texts) > 0 {
			lists = append(lists, names(typ, 1, texts))
		}
	}
	return lists
}
