//go:build linux

package session

import (
	"goprof/profile"
	"goprof/sampler"
	"goprof/sampler/look"
)

// Mode says which threads a recording looks at.
type Mode string

const (
	CPUMode     Mode = profile.ModeCPU    // those that use CPU time
	WallMode    Mode = profile.ModeWall   // all, whatever they do
	WaitingMode Mode = profile.ModeOffCPU // those that wait
	TTSPMode    Mode = profile.ModeTTSP   // those that keep a safepoint waiting
)

// IsWall reports whether every thread is looked at in turn, and a look stands for the time that passes.
func (m Mode) IsWall() bool { return m == WallMode || m == WaitingMode || m == TTSPMode }

// name is the mode's name in a profile's Meta.
func (m Mode) name() string {
	if m == "" {
		return string(CPUMode)
	}
	return string(m)
}

// engine makes the engine that takes the samples of a recording.
func (s *Session) engine(opt RecordOptions) sampler.Engine {
	pid, cpu := s.Process.PID(), s.Process.CPU()
	if opt.Event != nil {
		return sampler.NewEvents(pid, cpu, opt.Event.list, opt.Kernel)
	}
	if opt.Member != nil && !opt.Mode.IsWall() {
		return opt.Member(pid)
	}
	if !opt.Mode.IsWall() {
		return s.cpuEngine(opt.Engine, opt.Kernel)
	}
	if opt.Mode == TTSPMode {
		return s.gather(opt)
	}
	waits := s.VM.NewWaits(opt.Mode == WaitingMode).ReadFrom(s.memory)
	if opt.Mode == WaitingMode && opt.Engine == PerfEngine {
		return sampler.NewOffCPU(pid, cpu, sampler.OffCPUOptions{Min: opt.Min, During: func(snap *look.Look) {
			snap.Waiting.Java = waits.Read(&snap.Snapshot, snap.Waiting.Call)
		}})
	}
	return sampler.NewWall(pid, cpu, sampler.WallOptions{
		NonBlocking: opt.NonBlocking,
		NativeOnce:  opt.NativeOnce,
		WaitingOnly: opt.Mode == WaitingMode,
		During: func(snap *look.Look) {
			snap.Waiting.Java = waits.Read(&snap.Snapshot, snap.Waiting.Call)
		},
	})
}
