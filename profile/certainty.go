package profile

// Certainty is how certain it is which method a frame runs. Physical frames are certain. If a compiler has inlined
// methods into the topmost frame, goprof infers which of them is running.
type Certainty uint8

const (
	Certain Certainty = iota
	Likely            // all evidence about this instruction agrees
	Guessed           // the debug records before and after this instruction differ
	NumCertainty
)

var certaintyNames = [NumCertainty]string{"certain", "likely", "guessed"}

func (c Certainty) String() string {
	if c < NumCertainty {
		return certaintyNames[c]
	}
	return "unknown"
}
