package dumps

import (
	"bytes"
	"strings"
	"testing"

	"goprof/profile"
	"goprof/profile/contention"
)

// TestUnconfirmedIsShown: each output that tells of waits says which wait could not be confirmed.
func TestUnconfirmedIsShown(t *testing.T) {
	threads := []profile.ThreadDump{{TID: 7, Name: "seven", State: "BLOCKED", Java: true, Unconfirmed: true},
		{TID: 8, Name: "eight", Java: true}}
	dump := &profile.Dump{PID: 4, Threads: threads}
	var text, group, asJSON, locks, locksJSON bytes.Buffer
	for _, err := range []error{
		Text(&text, dump, Shape{}), Text(&group, dump, Shape{Group: true}),
		JSON(&asJSON, dump, Shape{}), LocksText(&locks, threads, contention.New(threads)),
		LocksJSON(&locksJSON, threads, contention.New(threads)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for what, out := range map[string]string{"text": text.String(), "group": group.String()} {
		if !strings.Contains(out, unconfirmedText) || !strings.Contains(out, "1 thread seems to wait") {
			t.Errorf("%s: %s", what, out)
		}
	}
	for what, out := range map[string]string{"JSON": asJSON.String(), "locks JSON": locksJSON.String()} {
		if strings.Count(strings.ReplaceAll(out, " ", ""), `"unconfirmed":true`) != 1 {
			t.Errorf("%s: %s", what, out)
		}
	}
	if out := locks.String(); !strings.Contains(out, "NOT CONFIRMED") || strings.Contains(out, "No thread waits") {
		t.Error(out)
	}
}
