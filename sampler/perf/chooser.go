//go:build linux

package perf

import (
	"encoding/binary"

	"golang.org/x/sys/unix"

	"goprof/sampler/bpf"
	"goprof/sampler/ring"
	"goprof/sampler/span"
)

// chooser lets samples of some processes pass, and draws a share of each process's samples by lot. It is a BPF program
// with a table of processes and the chance of their samples.
type chooser struct {
	prog, table int
	spans       *span.Reader // nil: spans cannot be read here
	noSpans     error        // why
	outputs     *span.Outputs
}

// mostChosen bounds the processes in the table. The kernel allocates all entries at once, because an interrupt cannot
// wait for memory.
const mostChosen = 4096

// mostPublish is how many of the processes may publish spans. Samples of further processes have no span.
const mostPublish = 512

func newChooser() (*chooser, error) {
	table, err := bpf.NewMap(bpf.MapHash, 4, 8, mostChosen)
	if err != nil {
		return nil, err
	}
	c := &chooser{table: table}
	c.spans, c.noSpans = span.New(mostPublish)
	c.outputs = c.spans.NewOutputs()
	c.prog, err = c.outputs.LoadForPerf(func(o *span.Outputs) *bpf.Code { return chooserProgram(table, o) })
	if err != nil {
		c.closeMaps()
		return nil, err
	}
	return c, nil
}

func (c *chooser) close() {
	unix.Close(c.prog)
	c.closeMaps()
}

func (c *chooser) closeMaps() {
	unix.Close(c.table)
	c.outputs.Close()
	c.spans.Close()
}

// chooserProgram returns 1 for a sample that is wanted. A sample is wanted if a random number of 32 bits is below the
// chance of its process. A chance of 1<<32 means all samples.
func chooserProgram(table int, outputs *span.Outputs) *bpf.Code {
	c := bpf.New()
	c.Mov(bpf.R6, bpf.R1)
	c.Call(bpf.GetCurrentPIDTGID)
	c.Imm(bpf.RightImm, bpf.R0, 32) // the upper half is the process
	c.Store32(bpf.R10, -4, bpf.R0)
	c.CallOf(bpf.MapLookup, table, -4)
	c.Jump(bpf.JumpEqImm, bpf.R0, 0, 0, "end")
	c.Load(bpf.Load64, bpf.R7, bpf.R0, 0)
	c.Call(bpf.Random)
	c.Mov(bpf.R1, bpf.R0)
	c.Imm(bpf.MovImm, bpf.R0, 0)
	c.Jump(bpf.JumpGe, bpf.R1, bpf.R7, 0, "end")
	outputs.Write(c, -ring.SpanSize)
	c.Label("end")
	c.Op(bpf.Exit, 0, 0, 0, 0)
	return c
}

// choose lets a share of a process's samples pass.
func (c *chooser) choose(pid int, share float64) error {
	chance := binary.NativeEndian.AppendUint64(nil, uint64(share*(1<<32)))
	return bpf.Change(bpf.UpdateElem, c.table, uint32(pid), chance)
}

// leaveOut lets no sample of a process pass. An error means that the process is not in the table.
func (c *chooser) leaveOut(pid int) { bpf.Change(bpf.DeleteElem, c.table, uint32(pid), nil) }
