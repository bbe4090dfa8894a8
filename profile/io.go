package profile

import (
	"net/netip"
	"slices"
	"time"
)

// EventIO is the event of calls that read and write files and sockets.
const EventIO = "io"

// IOOp is what a call does.
type IOOp uint8

const (
	IORead IOOp = iota
	IOWrite
	IOForce // fsync and its like
	IOConnect
	IOAccept
	IOWait // until something is ready that no call of the thread then used
	IOOpen
	IOLookup // of a host's name
	NumIOOp
)

var ioOps = [NumIOOp]string{"read", "write", "force", "connect", "accept", "wait", "open", "lookup"}

func (o IOOp) String() string { return ioOps[min(o, NumIOOp-1)] }

// IOLabel is the leaf of a call's stack: what the call does, with what.
func IOLabel(op IOOp, target string) string { return IOLabelOf(op.String(), target) }

// IOLabelOf is IOLabel of an operation's name.
func IOLabelOf(op, target string) string { return "[" + op + ": " + target + "]" }

// ParseIOOp finds an operation by its name.
func ParseIOOp(name string) (IOOp, bool) {
	i := slices.Index(ioOps[:], name)
	return IOOp(max(i, 0)), i >= 0
}

// What a target of calls is.
const (
	IOFile   = "file"
	IOPeer   = "peer"   // the other end of a connection that the process made, or of one where that is not known
	IOClient = "client" // a host that has connected to the process
	IOListen = "listener"
	IOName   = "name"  // of a host, that was looked up
	IOOther  = "other" // pipes, epoll and its like; what has no name
)

// IOUnknown is the name of a target that was closed before goprof could read where it leads to.
const IOUnknown = "[not known]"

// IOTarget is a file, a peer or what else calls are about.
type IOTarget struct {
	Kind string
	Name string
	Addr netip.AddrPort // of peers and clients
}

// IOCall is one call.
type IOCall struct {
	Op     IOOp
	Target IOTarget
	Took   time.Duration
	Bytes  int64
	Failed bool
	End    bool // a read that found the end
}

// IOSum is what calls of one sort, about one target, came to. The kernel has counted all of them.
type IOSum struct {
	Kind   string        `json:"kind"`
	Target string        `json:"target"`
	Op     string        `json:"operation"`
	Calls  int64         `json:"calls"`
	Bytes  int64         `json:"bytes"`
	Took   time.Duration `json:"took_ns"`
	Failed int64         `json:"failed,omitempty"`
	// Pending counts calls that had not ended when the recording did, and Pended is how long these had lasted by then.
	// They are not among Calls.
	Pending int64         `json:"pending,omitempty"`
	Pended  time.Duration `json:"pended_ns,omitempty"`
}

// IO is the account of a recording of such calls.
type IO struct {
	Sums []IOSum `json:"sums"` // those that took longest first
	// Tries are calls that found nothing to read, or no room to write. They are not among Calls.
	Tries    int64 `json:"tries"`
	Unopened int64 `json:"unopened"` // files that could not be opened
	// Lost counts the calls whose target is not known, by the reason.
	Lost []IOLost `json:"lost,omitempty"`
	// Notes say what else is missing.
	Notes []string `json:"notes,omitempty"`
}

// IOLost are calls that are in no sum.
type IOLost struct {
	Why   string        `json:"why"`
	Calls int64         `json:"calls"`
	Took  time.Duration `json:"took_ns"`
}
