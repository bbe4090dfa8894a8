// Package bpf writes small BPF programs and loads them into the kernel.
package bpf
