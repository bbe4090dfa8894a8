package jfr

import (
	"bytes"
	"testing"
	"time"

	"goprof/profile"
)

// The constants of chunkOfOne have these keys. All are of one byte.
const (
	oneMethod = 33
	oneClass  = 49
	oneSymbol = 65
	noKey     = 127
)

// chunkOfOne is a file of one chunk with one sample, of one frame.
func chunkOfOne(t *testing.T) []byte {
	t.Helper()
	var file bytes.Buffer
	w := NewWriter(&file, Options{})
	w.pools.methods.last, w.pools.classes.last, w.pools.symbols.last = oneMethod-1, oneClass-1, oneSymbol-1
	w.pools.forget()
	frame := profile.Frame{Func: &profile.Func{Name: "shop.Cart.add", File: "Cart.java"}, Kind: profile.C2, Line: 7}
	s := profile.Sample{At: moment(0), Thread: worker, Stack: stackOn(frame), CPU: 1}
	if err := w.Sample(&s); err != nil {
		t.Fatal(err)
	}
	finish(t, w, moment(time.Second))
	return file.Bytes()
}

// lacking is a chunk in which what begins with a key has another key, which nothing refers to.
func lacking(t *testing.T, chunk []byte, at int, constant ...byte) []byte {
	t.Helper()
	if n := bytes.Count(chunk, constant); n != 1 {
		t.Fatalf("%d constants %v", n, constant)
	}
	other := bytes.Clone(constant)
	other[at] = noKey
	return bytes.Replace(chunk, constant, other, 1)
}

// numbered are the stacks of a file's samples, as texts, and their numbers.
func numberedStacks(t *testing.T, file []byte) (texts []string, numbers []uint64) {
	t.Helper()
	r := NewReader(bytes.NewReader(file), int64(len(file)), nil)
	r.NumberStacks()
	for {
		e, err := r.Next()
		if err != nil {
			return texts, numbers
		}
		if err := r.ReadStack(e); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, e.Stack.Frames[0].Func.File+" "+stackText(e.Stack))
		numbers = append(numbers, e.StackNumber)
	}
}

// TestNumbersOfLackingChunks: a chunk that lacks a constant has its own stacks and numbers, before and after a chunk
// that has the constant. Stacks that are the same in all chunks have one number.
func TestNumbersOfLackingChunks(t *testing.T) {
	whole := chunkOfOne(t)
	name := byte(oneSymbol)
	symbol := func(text string) []byte {
		at := bytes.Index(whole, appendText(nil, text)) - 1
		if at < 0 {
			t.Fatalf("no symbol %s", text)
		}
		name = whole[at]
		return appendText([]byte{name}, text)
	}
	for what, lacks := range map[string][]byte{
		"nothing":           whole,
		"the class's name":  lacking(t, whole, 0, symbol("shop/Cart")...),
		"the method's name": lacking(t, whole, 0, symbol("add")...),
		"the method":        lacking(t, whole, 0, oneMethod, oneClass, name),
		"the class":         lacking(t, whole, 0, oneClass, 0, oneSymbol, 0, 0, 0),
		"the file's name":   lacking(t, whole, 0, symbol("Cart.java")...),
		"the source":        lacking(t, whole, 0, oneClass, name, 0),
	} {
		alone, _ := numberedStacks(t, whole)
		other, _ := numberedStacks(t, lacks)
		if len(alone) != 1 || len(other) != 1 || (alone[0] == other[0]) != (what == "nothing") {
			t.Fatalf("%s: %q, %q", what, alone, other)
		}
		texts, numbers := numberedStacks(t, bytes.Join([][]byte{whole, lacks, whole, whole, lacks, lacks}, nil))
		met := map[uint64]string{}
		for i, text := range texts {
			want := alone[0]
			if i == 1 || i > 3 {
				want = other[0]
			}
			if before, known := met[numbers[i]]; text != want || known && before != text {
				t.Errorf("%s, chunk %d: %q of number %d, not %q; before %q", what, i, text, numbers[i], want, before)
			}
			met[numbers[i]] = text
		}
		if want := map[bool]int{true: 1, false: 2}[what == "nothing"]; len(texts) != 6 || len(met) != want {
			t.Errorf("%s: %d samples, numbers %v", what, len(texts), numbers)
		}
	}
}

// TestNoFramesTakeNoRoom: events of a stack without frames leave the tables as they are.
func TestNoFramesTakeNoRoom(t *testing.T) {
	var file bytes.Buffer
	w := NewWriter(&file, Options{})
	cut := &profile.Stack{Truncated: profile.TooDeep}
	for i := range 3 * firstSlots {
		s := profile.Sample{At: moment(time.Duration(i)), Thread: worker, Stack: cut, CPU: 1}
		if err := w.Sample(&s); err != nil {
			t.Fatal(err)
		}
	}
	finish(t, w, moment(time.Second))
	n := 0
	r := eachEvent(t, bytes.NewReader(file.Bytes()), func(e *Event) {
		if n++; e.StackNumber != 0 || e.Stack == nil || e.Stack.Truncated != profile.TooDeep {
			t.Fatalf("%+v", e)
		}
	})
	if numbers := &r.stacks.numbers; n != 3*firstSlots || numbers.byBytes.used+numbers.byFrames.used != 0 {
		t.Errorf("%d events, %d and %d places used", n, numbers.byBytes.used, numbers.byFrames.used)
	}
}
