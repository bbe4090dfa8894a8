package process

import "slices"

// Trail is the path from a thread's Side to the memory in the heap that belongs to its stack: the frames of a virtual
// thread. The code that copies the stack follows the trail at the same moment, because that memory changes whenever the
// thread runs. The trail goes from a word of the Side to a frame on the thread's stack, from a word of that frame to an
// object, and from there along a list of blocks. Offsets are in bytes.
type Trail struct {
	// Known: the other fields are filled in.
	Known bool
	// Frame is the offset of the frame's address in the Side. If that word is nil, there is nothing to follow.
	Frame int
	// Owner is the offset of the object's address in the frame. OwnerSize bytes of the object are copied. First is the
	// offset in the object of the reference to the first block.
	Owner, OwnerSize, First int
	// HeadSize is the number of bytes of a block that are always copied, 0 if blocks are not known yet. Next is the offset
	// in a block of the reference to the next block.
	HeadSize, Next int
	// Begin and End are the offsets in a block's head of the bounds of its used part. The bounds are 32-bit numbers of
	// words after the head. Less is the offset of a number to subtract from End, 0 if there is none.
	Begin, End, Less int
	// Below is the number of bytes below the used part that are also copied.
	Below int
	// ObjectSize is the number of bytes that are copied of the object of the thread's handle (ptrace.Hint.Handle), 0 if
	// the object is not needed.
	ObjectSize int
	// Narrow: a reference n has 32 bits and stands for Base + n<<Left. Otherwise it has 64 bits and stands for n>>Right.
	// The reference in a handle always has 64 bits.
	Narrow      bool
	Base        uint64
	Left, Right uint8
}

const (
	// MaxTrailBlocks bounds the blocks that are copied. MaxTrailPieces bounds the resulting pieces: the handle and its
	// object, the owner, and two pieces of each block, because the rest of a block is copied by a second call.
	MaxTrailBlocks = 4
	MaxTrailPieces = 4 + 2*MaxTrailBlocks
	// MaxTrailBytes bounds the bytes of all pieces.
	MaxTrailBytes = 64 << 10
	// MaxTrailHead bounds OwnerSize and HeadSize. MaxTrailObject bounds ObjectSize.
	MaxTrailHead   = 128
	MaxTrailObject = 512
)

// Pieces are copies of ranges of memory, made at one moment.
type Pieces struct {
	List  []Piece
	Bytes []byte // of all pieces, one after the other
}

type Piece struct {
	Addr uint64
	Size int
}

// Reset clears p, but keeps its memory.
func (p *Pieces) Reset() { p.List, p.Bytes = p.List[:0], p.Bytes[:0] }

// Read fills b with the copied memory at addr. It returns false if no piece has all of it.
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
