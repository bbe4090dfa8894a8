package vmstructs

import "testing"

func TestKindsOfCollectors(t *testing.T) {
	for name, want := range map[string]CollectorKind{"Copy": YoungCollections, "MSC": FullCollections,
		"PSScavenge": YoungCollections, "PSParallelCompact": FullCollections, "PCopy": YoungCollections,
		"G1 incremental collections": YoungCollections, "G1 stop-the-world full collections": FullCollections,
		"G1 stop-the-world phases": ConcurrentPauses, "G1 young collection pauses": YoungCollections,
		"G1 full collection pauses": FullCollections, "G1 concurrent cycle pauses": ConcurrentPauses,
		"Serial young collection pauses": YoungCollections, "Parallel full collection pauses": FullCollections,
		"ZGC minor collection pauses": ConcurrentPauses, "Z concurrent cycle pauses": ConcurrentPauses,
		"Shenandoah full": ConcurrentPauses, "CMS": ConcurrentPauses, "something new": OtherCollections} {
		if got := KindsOfCollectors([]string{name})[0]; got != want {
			t.Errorf("%s is %s", name, got)
		}
	}
	if kinds := KindsOfCollectors([]string{"PCopy", "CMS", "CMS stop-the-world phases"}); kinds[1] != FullCollections ||
		kinds[2] != ConcurrentPauses {
		t.Errorf("CMS of 11: %v", kinds)
	}
}
