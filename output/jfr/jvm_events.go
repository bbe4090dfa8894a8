package jfr

import (
	"math"
	"slices"
	"time"

	"goprof/profile"
)

// The JVM's own counters, written as events of the JDK's recorder: collections, safepoints, compilations, code cache,
// classes. Viewers have pages and rules for them. The types have only the fields that goprof can know. That is allowed:
// readers find fields by their names in the file's own metadata.

// Configuration is how a JVM is set up. Every chunk has it.
type Configuration struct {
	Young, Old                                   string // collectors, by their names in jdk.types.GCName
	Parallel, Concurrent                         int    // numbers of the collector's threads
	Dynamic, ExplicitConcurrent, ExplicitRefused bool
	HeapMax, HeapInitial                         uint64
	Compilers                                    int // number of compiler threads
	Tiered                                       bool
	CodeReserved                                 uint64
}

func (w *Writer) SetConfiguration(c Configuration) {
	w.facts.config = &c
	w.again(func() { w.facts.writeConfiguration(w) })
}

func (f *facts) writeConfiguration(w *Writer) {
	c := f.config
	if c == nil {
		return
	}
	at := w.start.Ticks
	w.put(typeGCConfiguration, at, w.word(typeGCName, c.Young), w.word(typeGCName, c.Old), int32(c.Parallel),
		int32(c.Concurrent), c.Dynamic, c.ExplicitConcurrent, c.ExplicitRefused)
	w.put(typeHeapConfiguration, at, c.HeapMax, c.HeapInitial)
	w.put(typeCompilerConfiguration, at, int32(c.Compilers), c.Tiered)
	w.put(typeCodeCacheConfiguration, at, c.CodeReserved)
}

// Collection is a collection of the heap, or a pause of one.
type Collection struct {
	Number      int64
	Name, Cause string // "G1New", "G1 Evacuation Pause"; empty: not known
	Pause       string // the JVM's name of the pause; empty: the collection ran beside the program
	Part        bool   // a pause of a collection that mainly runs beside the program
	Young, Old  bool   // what it collected, if that is known
	Length      time.Duration
}

// Collection writes a collection with the given beginning.
func (w *Writer) Collection(begin profile.Instant, c Collection) error {
	if err := w.at(begin); err != nil {
		return err
	}
	at, number, length := begin.Ticks, int32(c.Number), max(c.Length, 0)
	if !c.Part {
		paused := length
		if c.Pause == "" {
			paused = 0
		}
		w.put(typeGarbageCollection, at, length, number, w.word(typeGCName, c.Name), w.word(typeGCCause, c.Cause), paused,
			paused)
		if c.Old {
			w.put(typeOldCollection, at, length, number)
		} else if c.Young {
			w.put(typeYoungCollection, at, length, number)
		}
	}
	if c.Pause != "" {
		w.put(typeGCPause, at, length, int64(0), number, c.Pause) // 0: no thread
	}
	return nil
}

// Heap writes how full the heap is after a collection.
func (w *Writer) Heap(at profile.Instant, number int64, used, committed, reserved uint64) error {
	if err := w.at(at); err != nil {
		return err
	}
	w.put(typeHeapSummary, at.Ticks, int32(number), w.word(typeGCWhen, "After GC"), committed, reserved, used)
	return nil
}

// Safepoint writes a safepoint: its beginning, the time until all threads had stopped, and its whole length.
func (w *Writer) Safepoint(begin profile.Instant, number int64, sync, length time.Duration) error {
	if err := w.putAt(begin, typeSafepointBegin, max(sync, 0), number); err != nil {
		return err
	}
	w.put(typeSafepointEnd, begin.Ticks+max(int64(length), 0), int64(0), number)
	return nil
}

// Compiled is what compilers have done since the JVM's start.
type Compiled struct {
	Methods, OnStack, Bailouts, Invalidated   uint64
	MethodBytes, OnStackBytes, Size, CodeSize uint64
	Time                                      time.Duration
}

func (w *Writer) Compiled(at profile.Instant, c Compiled) error {
	return w.putAt(at, typeCompilerStatistics, number32(c.Methods+c.OnStack), number32(c.Bailouts),
		number32(c.Invalidated), number32(c.OnStack), number32(c.Methods), c.OnStackBytes, c.MethodBytes, c.Size,
		c.CodeSize, uint64(c.Time.Milliseconds()))
}

func number32(n uint64) int32 { return int32(min(n, math.MaxInt32)) }

// CodeHeap writes how many bytes of a part of the code cache are free, and how often there was no room.
func (w *Writer) CodeHeap(at profile.Instant, name string, free, refused uint64) error {
	if err := w.at(at); err != nil {
		return err
	}
	w.put(typeCodeCacheStatistics, at.Ticks, w.word(typeCodeBlobType, name), free, number32(refused))
	return nil
}

// CPULoad writes three shares of the machine's CPUs, from 0 to 1: the JVM's own code, the kernel for the JVM, and the
// whole machine's use.
func (w *Writer) CPULoad(at profile.Instant, user, kernel, machine float64) error {
	share := func(part float64) float32 { return float32(min(max(part, 0), 1)) }
	return w.putAt(at, typeCPULoad, share(user), share(kernel), share(machine))
}

// Classes writes how many classes were loaded and unloaded since the JVM's start.
func (w *Writer) Classes(at profile.Instant, loaded, unloaded uint64) error {
	return w.putAt(at, typeClassLoadingStatistics, loaded, unloaded)
}

// words are constants of one word: they stay from chunk to chunk. Key 0 is none.
type words map[typeID][]string

// maxWords bounds the words of a type: a target's memory may hold anything.
const maxWords = 1 << 8

func (w *Writer) word(typ typeID, text string) int32 {
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
	return int32(i + 1)
}

func (all words) constants() (lists []constantList) {
	for _, typ := range []typeID{typeGCName, typeGCCause, typeGCWhen, typeCodeBlobType} {
		if texts := all[typ]; len(texts) > 0 {
			lists = append(lists, names(typ, 1, texts))
		}
	}
	return lists
}
