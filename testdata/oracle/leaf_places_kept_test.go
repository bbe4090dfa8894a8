//go:build linux

package oracle

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"goprof/process"
	"goprof/profile"
	"goprof/sampler/look"
	"goprof/testdata/jvmtest"
	"goprof/unwind/leaf"
	"goprof/vmstructs"
)

// TestPlacesKeep samples truth.Places, and keeps a core file of each JVM with the pcs and the places of its samples.
// TestPlacesKept scores the rules at these pcs, as TestLeafKept does.
//
//	GOPROF_PLACES_KEEP=/dir GOPROF_PLACES=4000 go test ./testdata/oracle -run 'TestPlacesKeep$' -v
//	GOPROF_PLACES_KEEP=/dir go test ./testdata/oracle -run 'TestPlacesKept$' -v
func TestPlacesKeep(t *testing.T) {
	dir := keptPlaces(t)
	jvmtest.ForEachJDK(t, func(t *testing.T, jdk jvmtest.JDK) {
		pid := startPlaces(t, jdk).PID
		name := fmt.Sprintf("%s/places-%d-%d", dir, jdk.Version, pid)
		out, err := os.Create(name + ".places")
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		s := attach(t, pid)
		sample(t, s, 1e6, envNumber("GOPROF_PLACES", 4000), func(l *look.Look, st *profile.Stack) {
			if place := placeOfThread(pid, l.TID); place != 0 && len(st.Frames) > 0 && st.Frames[0].Kind.Java() {
				fmt.Fprintf(out, "%x %d %s\n", st.Frames[0].PC, place, st.Frames[0].Func.Name)
			}
		})
		writeCore(t, pid, name)
	})
}

// keptPlaces is where cores and pcs are kept.
func keptPlaces(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("GOPROF_PLACES_KEEP")
	if dir == "" {
		t.Skip("a tool for making rules: GOPROF_PLACES_KEEP names no folder for its core files")
	}
	return dir
}

// TestPlacesKept scores the rules on what TestPlacesKeep has kept, and writes NAME.told: what is told at each pc.
func TestPlacesKept(t *testing.T) {
	dir := keptPlaces(t)
	files, _ := filepath.Glob(filepath.Join(dir, "*.places"))
	if len(files) == 0 {
		t.Fatalf("%s has nothing that TestPlacesKeep has kept", dir)
	}
	all, right := 0, 0
	for _, name := range files {
		name = name[:len(name)-len(".places")]
		t.Run(filepath.Base(name), func(t *testing.T) {
			n, r := scorePlaces(t, name)
			all, right = all+n, right+r
		})
	}
	t.Logf("all: %.2f %%", 100*float64(right)/float64(max(all, 1)))
}

// scorePlaces scores one core. Samples whose code is gone, or was not compiled, say nothing of the rules.
func scorePlaces(t *testing.T, name string) (all, right int) {
	t.Helper()
	j := openJVM(t, name+".core", process.CoreOptions{})
	defer j.Close()
	told, err := os.Create(name + ".told")
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	var seen [places]placeSeen
	finder := leaf.New(j.Core, j.VM)
	gone := 0
	for _, k := range readPlaces(t, name) {
		b, err := j.VM.Blob(k.pc)
		if err != nil || b.Kind != vmstructs.Nmethod {
			gone++
			continue
		}
		scopes, sure := finder.At(b, k.pc)
		if len(scopes) == 0 {
			gone++
			continue
		}
		is := seen[k.place-1].note(k.place, scopes[0].Method.Full())
		fmt.Fprintf(told, "%v %d %x %v %s%s\n", is, k.place, k.pc, sure, k.live, scopesText(scopes))
	}
	text := ""
	for i := range seen {
		p := &seen[i]
		if all, right = all+p.samples, right+p.right; p.right*100 < p.samples*99 {
			text += fmt.Sprintf("\n   place %2d: %3d of %3d right%s", i+1, p.right, p.samples, p.others())
		}
	}
	t.Logf("%d of %d, %.1f %%; %d are gone%s", right, all, 100*float64(right)/float64(max(all, 1)), gone, text)
	return all, right
}

// keptPlace is a sample of truth.Places.
type keptPlace struct {
	pc    uint64
	place int
	live  string // what was told then
}

// readPlaces reads NAME.places.
func readPlaces(t *testing.T, name string) (all []keptPlace) {
	t.Helper()
	in, err := os.Open(name + ".places")
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var k keptPlace
		if _, err := fmt.Sscanf(lines.Text(), "%x %d %s", &k.pc, &k.place, &k.live); err != nil {
			t.Fatal(err)
		}
		if k.place < 1 || k.place > places {
			t.Fatalf("there is no place %d", k.place)
		}
		all = append(all, k)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
