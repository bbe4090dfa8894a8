package process

import "slices"

// Trail says how to get from a thread's Side to memory that belongs to its stack but lies in the heap: the frames of a
// virtual thread. The code that copies the stack follows the trail in the same moment, because that memory changes
// whenever the thread runs. The trail goes from a word of the Side to a frame on the thread's stack, from a word of
// that frame to an object, and from there along a list of blocks. Offsets are in bytes.
type Trail struct {
	// Known: the other fields are filled in. Until then there is nothing to follow.
	Known bool
	// Frame is where in the Side the frame's address is. Nil: nothing to follow this time.
	Frame int
	// Owner is where in the frame the object's address is, OwnerSize how much of the object is copied, First where in
	// it the reference to the first block is.
	Owner, OwnerSize, First int
	// HeadSize is how much of a block is copied in any case, 0 if blocks are not known yet; Next where in it the
	// reference to the next block is.
	HeadSize, Next int
	// Begin and End are where in a block's head the bounds of its used part are, numbers of 32 bits that count words
	// from the head's end. Less is where the number is that is to be subtracted from End, 0 if there is none.
	Begin, End, Less int
	// Below is how many bytes below the used part are copied with it.
	Below int
	// ObjectSize is how many bytes are copied of the object to which the thread's handle refers (ptrace.Hint.Handle).
	// 0: the object is not wanted.
	ObjectSize int
	// Narrow: a reference n has 32 bits and stands for Base + n<<Left. Else it has 64 bits and stands for n>>Right. The
	// reference in a handle has 64 bits in any case.
	Narrow      bool
	Base        uint64
	Left, Right uint8
}

const (
	// MaxTrailBlocks bounds the blocks that are copied. MaxTrailPieces bounds the pieces that result: the handle and
	// its object, the owner, and two pieces of each block, for the rest of a block is copied with a second call.
	MaxTrailBlocks = 4
	MaxTrailPieces = 4 + 2*MaxTrailBlocks
	// MaxTrailBytes bounds the bytes of all pieces.
	MaxTrailBytes = 64 << 10
	// MaxTrailHead bounds OwnerSize and HeadSize, MaxTrailObject ObjectSize.
	MaxTrailHead   = 128
	MaxTrailObject = 512
)

// Pieces are copies of memory that were made in one moment.
type Pieces struct {
	List  []Piece
	Bytes []byte // of all of them, one after the other
}

// Piece is one of them.
type Piece struct {
	Addr uint64
	Size int
}

// Reset makes p empty, and keeps its memory.
func (p *Pieces) Reset() { p.List, p.Bytes = p.List[:0], p.Bytes[:0] }

// Read copies memory at addr, and reports whether all of it lies in one piece.
func (p *Pieces) Read(addr uint64, b []byte) bool {
	at := 0
	for _, piece := range p.List {
		if off := addr - piece.Addr; off <= uint64(piece.Size) && uint64(len(b)) <= uint64(piece.Size)-off &&
			at+piece.Size <= len(p.Bytes) {
			copy(b, p.Bytes[at+int(off):])
			return true
		}
		at += piece.Size
	}
	return false
}

func (p *Pieces) clone() Pieces { return Pieces{slices.Clone(p.List), slices.Clone(p.Bytes)} }
