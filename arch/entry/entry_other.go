//go:build !linux || !(amd64 || arm64)

// Package entry is for Linux only.
package entry
