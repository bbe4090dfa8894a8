// Package ring opens perf events and reads the records that the kernel writes for them. Records are in a ring: memory
// that goprof shares with the kernel. It knows the records (record.go), how much memory all rings of goprof may have
// (room.go), and what the kernel permits (event.go). The engines know what a record means.
package ring
