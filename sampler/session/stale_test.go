//go:build linux

package session

import (
	"testing"

	"goprof/profile"
	"goprof/target"
)

// A snapshot that has waited too long is counted and not walked: what it points at has moved on.
func TestStaleSnapshotsAreLost(t *testing.T) {
	r := &recording{profile: profile.New()} // without a session: nothing may be asked
	for range 2 {
		r.take(&target.Snapshot{TID: 1, When: now() - int64(staleAfter) - 1})
	}
	sum := r.profile.Summary()
	if sum.Attempted != 2 || sum.Lost != 2 || sum.LostBy[profile.Stale.String()] != 2 {
		t.Errorf("%d attempted, %d lost: %v", sum.Attempted, sum.Lost, sum.LostBy)
	}
}
