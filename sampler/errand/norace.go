//go:build !race

package errand

const raceEnabled = false
