//go:build !race

package osthread

const raceEnabled = false
