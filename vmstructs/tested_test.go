package vmstructs

import "testing"

func TestTested(t *testing.T) {
	releases := TestedReleases()
	if len(releases) == 0 {
		t.Fatal("no release is tested")
	}
	for _, major := range releases {
		if !(Version{Major: major}).Tested() {
			t.Errorf("JDK %d", major)
		}
	}
	releases[0] = 6
	if (Version{Major: 6}).Tested() || (Version{}).Tested() {
		t.Error("a release that nobody tests counts as tested")
	}
}
