package vmstructs

import "slices"

// tested are the JDKs that the tests run on. Others are read by what they export.
var tested = []int{17, 25}

// TestedReleases lists the feature releases of the JDK that the tests run on.
func TestedReleases() []int { return slices.Clone(tested) }

// Tested reports whether the tests run on this release.
func (v Version) Tested() bool { return slices.Contains(tested, v.Major) }
