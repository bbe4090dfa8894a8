package main

import (
	"testing"
	"time"
)

// FuzzDuration: what is understood is a time that goes on, and is understood again as it is
// written.
func FuzzDuration(f *testing.F) {
	for _, text := range []string{"30s", "2.5s", "5m", "30", "0.5", "1h30m", "", "-1", "1e300", "NaN", "0x10", "1_0", "+5", "9223372036s", ".5", "1e-9"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d durationFlag
		if err := d.Set(text); err != nil {
			if d.Duration != 0 {
				t.Fatalf("%q: %v and %v", text, d.Duration, err)
			}
			return
		}
		if d.Duration <= 0 {
			t.Fatalf("%q is %v", text, d.Duration)
		}
		var again durationFlag
		if err := again.Set(d.String()); err != nil || again != d {
			t.Fatalf("%q is %v, and that is %v (%v)", text, d.Duration, again.Duration, err)
		}
		if plain, err := time.ParseDuration(text); err == nil && plain != d.Duration {
			t.Fatalf("%q is %v", text, d.Duration)
		}
	})
}
