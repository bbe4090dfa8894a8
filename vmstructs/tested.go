package vmstructs

import "slices"

// tested are the JDKs that make test-matrix runs on (docs/support.md). Others are read by what they
// export.
var tested = []int{8, 11, 17, 21, 25, 26, 27}

// TestedReleases lists the feature releases of the JDK that the tests run on.
func TestedReleases() []int { return slices.Clone(tested) }

// Tested reports whether the tests run on this release.
func (v Version) Tested() bool { return slices.Contains(tested, v.Major) }
