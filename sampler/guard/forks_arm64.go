//go:build linux

package guard

var oldForks []uint32
