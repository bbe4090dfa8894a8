package recording

import "goprof/output/jfr"

// noted are the marks of a JFR file, and the starts and ends of its threads. They are noted in the first reading of the
// file, so that it need not be read again for them. If there are too many, none are kept.
type noted struct {
	marks   []Mark
	lives   []Life
	texts   int // bytes of the marks' texts, and of the threads' names
	tooMany bool
}

// These bound the memory of kept events to some 5 MB.
const (
	maxNoted      = 1 << 15 // of each
	maxNotedTexts = 1 << 20
)

// take keeps an event if it is a mark, or the start or end of a thread.
func (n *noted) take(r *jfr.Reader, e *jfr.Event, open safepoints) {
	switch {
	case n.tooMany:
		return
	case isLife(e.Name):
		n.lives = append(n.lives, lifeOf(r, e))
		n.texts += len(e.Thread.Name) + len(e.Thread.JavaName)
	default:
		if m, ok := open.mark(r, e); ok {
			n.marks = append(n.marks, m)
			n.texts += len(m.Text)
		}
	}
	if max(len(n.lives), len(n.marks)) > maxNoted || n.texts > maxNotedTexts {
		*n = noted{tooMany: true}
	}
}

// eachOf calls visit for each element of a list, until a call fails.
func eachOf[T any](list []T, visit func(T) error) error {
	for _, one := range list {
		if err := visit(one); err != nil {
			return err
		}
	}
	return nil
}
