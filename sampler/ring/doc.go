// Package ring opens perf events and reads what the kernel writes of them into memory that goprof shares with it. It
// knows the records (record.go), how much memory all rings of goprof may have (room.go), and what the kernel permits
// (event.go). The engines know what a record means.
package ring
