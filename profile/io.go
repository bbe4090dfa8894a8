package profile

import (
	"net/netip"
	"slices"
	"time"
)

// EventIO is the event of calls that read and write files and sockets.
const EventIO = "io"

type IOOp uint8

const (
	IORead IOOp = iota
	IOWrite
	IOForce // fsync and its like
	IOConnect
	IOAccept
	IOWait // for readiness that no call of the thread then used
	IOOpen
	IOLookup // of a host's name
	NumIOOp
)

var ioOps = [NumIOOp]string{"read", "write", "force", "connect", "accept", "wait", "open", "lookup"}

func (o IOOp) String() string { return ioOps[min(o, NumIOOp-1)] }

// IOLabel returns the leaf of a call's stack: the operation and its target.
func IOLabel(op IOOp, target string) string { return IOLabelOf(op.String(), target) }

// IOLabelOf is IOLabel for an operation's name.
func IOLabelOf(op, target string) string { return "[" + op + ": " + target + "]" }

func ParseIOOp(name string) (IOOp, bool) {
	i := slices.Index(ioOps[:], name)
	return IOOp(max(i, 0)), i >= 0
}

// Kinds of targets.
const (
	IOFile   = "file"
	IOPeer   = "peer"   // the other end of a connection that the process made, or whose maker is not known
	IOClient = "client" // a host that has connected to the process
	IOListen = "listener"
	IOName   = "name"  // of a host that was looked up
	IOOther  = "other" // pipes, epoll and others without a name
)

// IOUnknown is the name of a target that was closed before goprof could read its name.
const IOUnknown = "[not known]"

// IOTarget is the target of calls: a file, a peer, or something else.
type IOTarget struct {
	Kind string
	Name string
	Addr netip.AddrPort // for peers and clients
}

type IOCall struct {
	Op     IOOp
	Target IOTarget
	Took   time.Duration
	Bytes  int64
	Failed bool
	End    bool // a read that reached the end
}

// IOSum adds up all calls with one operation and one target. The kernel has counted them.
type IOSum struct {
	Kind   string        `json:"kind"`
	Target string        `json:"target"`
	Op     string        `json:"operation"`
	Calls  int64         `json:"calls"`
	Bytes  int64         `json:"bytes"`
	Took   time.Duration `json:"took_ns"`
	Failed int64         `json:"failed,omitempty"`
	// Pending counts the calls that had not ended at the recording's end, and Pended is their time until then. They are
	// not in Calls.
	Pending int64         `json:"pending,omitempty"`
	Pended  time.Duration `json:"pended_ns,omitempty"`
}

// IO is the account of a recording of calls that read and write.
type IO struct {
	Sums []IOSum `json:"sums"` // the longest time first
	// Tries are calls that found nothing to read, or no room to write. They are not in Calls.
	Tries    int64 `json:"tries"`
	Unopened int64 `json:"unopened"` // files that could not be opened
	// Lost counts the calls whose target is not known, by reason.
	Lost []IOLost `json:"lost,omitempty"`
	// Notes say what else is incomplete.
	Notes []string `json:"notes,omitempty"`
}

// IOLost are calls that are in no sum.
type IOLost struct {
	Why   string        `json:"why"`
	Calls int64         `json:"calls"`
	Took  time.Duration `json:"took_ns"`
}
