//go:build linux

package sampler

// NoVisits is why an engine that visits CPUs did not, or gave it up.
type NoVisits uint8

const (
	_             NoVisits = iota
	NoPreempters           // goprof has no real-time priority, or the kernel refused it an OS thread for each CPU
	VisitorTraced          // goprof is traced itself (strace), and comes nowhere in time
	OtherCPUs              // goprof may not go to all CPUs of the program
	OneCPU                 // the program may use one CPU only
	MetNobody              // visits came too late, or the kernel did not say which threads were on the CPUs
	NoSchedstat            // the kernel does not charge threads in nanoseconds
)
