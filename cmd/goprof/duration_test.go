package main

import (
	"testing"
	"time"
)

func TestDurationFlag(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "2.5s": 2500 * time.Millisecond, "5m": 5 * time.Minute,
		"30": 30 * time.Second, "0.5": 500 * time.Millisecond, "1h30m": 90 * time.Minute,
		"": 0, "0": 0, "-1": 0, "abc": 0, "1e300": 0, "NaN": 0, "5 m": 0,
	} {
		var d durationFlag
		if err := d.Set(text); (err == nil) != (want != 0) || err == nil && time.Duration(d) != want {
			t.Errorf("%q: %v, %v, want %v", text, time.Duration(d), err, want)
		}
	}
}
