package profile

// Certainty is how sure it is which method a frame runs. Frames that the machine has are certain; of methods that
// a compiler has inlined into the topmost of them it must be inferred which one is running.
type Certainty uint8

const (
	Certain Certainty = iota
	Likely            // all that is known about the place says the same
	Guessed           // what is known before it and behind it differs
	NumCertainty
)

var certaintyNames = [NumCertainty]string{"certain", "likely", "guessed"}

func (c Certainty) String() string {
	if c < NumCertainty {
		return certaintyNames[c]
	}
	return "unknown"
}
