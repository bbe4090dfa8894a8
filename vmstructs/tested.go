package vmstructs

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed releases.txt
var releases string

// tested are the JDKs on which make test-matrix runs (docs/evidence/support.md), with the CPUs of each. goprof also
// reads other JDKs, by the fields that they export.
var tested = sync.OnceValue(func() (out []testedRelease) {
	for line := range strings.Lines(releases) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if major, err := strconv.Atoi(words[0]); err == nil { // TestTested checks this list
			out = append(out, testedRelease{major, words[1:]})
		}
	}
	return out
})

type testedRelease struct {
	major int
	cpus  []string // in the spelling of GOARCH
}

// TestedReleases lists the feature releases of the JDK on which the tests run.
func TestedReleases() []int {
	out := make([]int, 0, len(tested()))
	for _, r := range tested() {
		out = append(out, r.major)
	}
	return out
}

func (v Version) Tested() bool { return slices.Contains(TestedReleases(), v.Major) }
