package firefox

import (
	"path"
	"strings"

	"goprof/output/timeline"
	"goprof/profile"
)

// category is an entry of meta.categories. Its first subcategory is the category itself.
type category struct {
	Name          string   `json:"name"`
	Color         string   `json:"color"`
	Subcategories []string `json:"subcategories"`
}

// The categories. A kind of waiting has a colour if readers look for it. All other waiting is idle, which the viewer
// does not draw.
const (
	other = iota // the viewer's default is its first grey category
	interpreted
	c1
	c2
	inlined
	nativeMethod
	native
	jvm
	stub
	kernel
	idle
	blocked
	ready
	waitsIO

	inherited = -1 // from the caller
)

var categories = []category{
	other:        {"Other", "grey", []string{"Other", "No unwind information", "Truncated"}},
	interpreted:  {"Java, interpreted", "orange", onlyOther},
	c1:           {"Java, C1", "lightblue", onlyOther},
	c2:           {"Java, C2", "green", onlyOther},
	inlined:      {"Java, inlined", "blue", onlyOther},
	nativeMethod: {"Java, native method", "magenta", onlyOther},
	native:       {"Native", "yellow", onlyOther},
	jvm:          {"JVM", "purple", onlyOther},
	stub:         {"JVM stub", "darkgrey", onlyOther},
	kernel:       {"Kernel", "lightred", onlyOther},
	idle: {"Idle", "transparent",
		[]string{"Other", "parked", "sleeping", "waiting", "in VM", "in native", "stopped"}},
	blocked: {"Blocked on a monitor", "red", onlyOther},
	ready:   {"Ready, waits for a CPU", "brown", onlyOther},
	waitsIO: {"Waits for I/O", "lightblue", []string{"Other", "socket", "file"}},
}

var onlyOther = []string{"Other"}

type place struct{ category, sub int }

// places are the categories of kinds of frames that always have the same one.
var places = map[profile.Kind]place{
	profile.Interpreted: {interpreted, 0}, profile.C1: {c1, 0}, profile.C2: {c2, 0}, profile.Inlined: {inlined, 0},
	profile.NativeMethod: {nativeMethod, 0}, profile.Stub: {stub, 0}, profile.Kernel: {kernel, 0},
}

// statePlaces are the categories of states. A running thread has the category of its code.
var statePlaces = map[profile.State]place{
	profile.Running: {inherited, 0}, profile.Runnable: {ready, 0}, profile.Blocked: {blocked, 0},
	profile.Parked: {idle, 1}, profile.Sleeping: {idle, 2}, profile.Waiting: {idle, 3}, profile.InVM: {idle, 4},
	profile.InNative: {idle, 5}, profile.Stopped: {idle, 6}, profile.Socket: {waitsIO, 1}, profile.File: {waitsIO, 2},
}

func placeOf(f *timeline.Frame) place {
	switch f.Kind {
	case profile.StateFrame:
		state, _ := stateOf(f.Func.Name)
		return statePlaces[state]
	case profile.Gap:
		if strings.HasPrefix(f.Func.Name, "[truncated") {
			return place{other, 2}
		}
		return place{other, 1}
	case profile.Native:
		if path.Base(f.Func.Module) == "libjvm.so" {
			return place{jvm, 0}
		}
		return place{native, 0}
	}
	return places[f.Kind] // a new kind is "other"
}

// stateOf splits a state's label: "[parked: what]".
func stateOf(label string) (state profile.State, what string) {
	name, what, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(label, "["), "]"), ": ")
	state, err := profile.ParseState(name)
	if err != nil {
		return profile.InNative, what
	}
	return state, what
}
