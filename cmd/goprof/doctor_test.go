//go:build linux

package main

import (
	"slices"
	"testing"
)

// TestDoctored: the doctor's remedies are about recording, whatever the doctor was asked.
func TestDoctored(t *testing.T) {
	args := []string{"/usr/bin/goprof", "doctor", "--json", "--pid", "7"}
	if got := doctored(args, 7); !slices.Equal(got, []string{"/usr/bin/goprof", "record", "--pid", "7"}) {
		t.Error(got)
	}
	if got := doctored(args, 0); !slices.Equal(got, []string{"/usr/bin/goprof", "record", "--pid", "PID"}) {
		t.Error(got)
	}
	if args[1] != "doctor" {
		t.Error("the arguments were changed")
	}
}
