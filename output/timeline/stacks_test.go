package timeline

import (
	"strconv"
	"testing"

	"goprof/profile"
)

// TestFunctionsAreBounded: a file with any number of different methods does not fill memory.
func TestFunctionsAreBounded(t *testing.T) {
	s := newStacks()
	for i := range maxFrames + 1000 {
		s.function(&profile.Func{Name: strconv.Itoa(i)})
	}
	if len(s.funcs) > maxFrames || len(s.same) > maxFrames {
		t.Errorf("%d functions, %d of other readers", len(s.funcs), len(s.same))
	}
}
