package profile

// Certainty is how sure it is which method a frame runs. Physical frames are certain. Which of the methods runs that a
// compiler has inlined into the topmost frame must be inferred.
type Certainty uint8

const (
	Certain Certainty = iota
	Likely            // all that is known of the place says the same
	Guessed           // the records before the place and behind it differ
	NumCertainty
)

var certaintyNames = [NumCertainty]string{"certain", "likely", "guessed"}

func (c Certainty) String() string {
	if c < NumCertainty {
		return certaintyNames[c]
	}
	return "unknown"
}
