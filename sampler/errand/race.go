//go:build race

package errand

const raceEnabled = true
