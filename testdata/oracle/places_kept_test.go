//go:build linux

package oracle

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"goprof/process"
	"goprof/profile"
	"goprof/sampler/look"
	"goprof/testdata/corefile"
	"goprof/testdata/jvmtest"
	"goprof/unwind"
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
		pid := startPlaces(t, jdk)
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
		if err := os.Rename(corefile.Write(t, pid), name+".core"); err != nil {
			t.Fatal(err)
		}
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
	files, _ := filepath.Glob(filepath.Join(keptPlaces(t), "*.places"))
	all, right := 0, 0
	for _, name := range files {
		n, r := scorePlaces(t, name[:len(name)-len(".places")])
		all, right = all+n, right+r
	}
	t.Logf("all: %.2f %%", 100*float64(right)/float64(max(all, 1)))
}

func scorePlaces(t *testing.T, name string) (all, right int) {
	t.Helper()
	core, err := os.Open(name + ".core")
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	st, err := core.Stat()
	if err != nil {
		t.Fatal(err)
	}
	target, err := process.OpenCore(core, st.Size(), process.CoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	vm, err := vmstructs.Open(target)
	if err != nil {
		t.Fatal(err)
	}
	w := unwind.New(target, vm)
	w.RawNames = true
	pcs, err := os.Open(name + ".places")
	if err != nil {
		t.Fatal(err)
	}
	defer pcs.Close()
	told, err := os.Create(name + ".told")
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	var seen [places]placeSeen
	for lines := bufio.NewScanner(pcs); lines.Scan(); {
		var pc uint64
		var place int
		var live string
		if _, err := fmt.Sscanf(lines.Text(), "%x %d %s", &pc, &place, &live); err != nil {
			t.Fatal(err)
		}
		p := &seen[place-1]
		p.samples++
		var scopes []vmstructs.Scope
		var sure profile.Certainty
		top := live
		if b, err := vm.Blob(pc); err == nil && b.Kind == vmstructs.Nmethod {
			if scopes, sure = w.Inlined(b, pc); len(scopes) > 0 {
				top = scopes[0].Method.Full()
			}
		}
		is := strings.HasSuffix(top, fmt.Sprintf(".leaf%d", place))
		if is {
			p.right++
		} else {
			if p.wrong == nil {
				p.wrong = map[string]int{}
			}
			p.wrong[top]++
		}
		fmt.Fprintf(told, "%v %d %x %v %s%s\n", is, place, pc, sure, live, scopesText(scopes))
	}
	text := ""
	for i := range seen {
		p := &seen[i]
		if all, right = all+p.samples, right+p.right; p.right*100 < p.samples*99 {
			text += fmt.Sprintf("\n   place %2d: %3d of %3d right%s", i+1, p.right, p.samples, p.others())
		}
	}
	t.Logf("%s: %d of %d, %.1f %%%s", filepath.Base(name), right, all, 100*float64(right)/float64(all), text)
	return all, right
}
