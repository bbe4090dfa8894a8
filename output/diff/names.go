package diff

import (
	"strings"

	"goprof/output"
	"goprof/profile/naming"
)

// comparable returns a frame's name without numbers that differ from run to run. All threads of a pool have one name.
func comparable(n output.Name) output.Name {
	switch {
	case n.Kind == output.LabelThread:
		n.Text = naming.PoolLabel(n.Text)
	case n.Kind.Java():
		n.Text = javaName(n.Text)
	}
	return n
}

func javaName(text string) string {
	name, signature, signed := strings.Cut(text, "(") // other tools write signatures
	dot := strings.LastIndexByte(name, '.')
	if dot <= 0 {
		return text
	}
	name = naming.Method(name[:dot], name[dot+1:], "")
	if signed {
		name += "(" + signature
	}
	return name
}
