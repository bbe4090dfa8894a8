package vmstructs

import (
	"strings"
)

// ClassNames reads the names of classes by their Klass, or by the head of an object. It caches no name, because another
// class may get the same address.
type ClassNames struct {
	vm      *VM
	klasses klassModel
	model   bool // klasses has been read
}

func (vm *VM) NewClassNames() *ClassNames {
	c := &ClassNames{vm: vm}
	var err error
	c.klasses, err = vm.readKlassModel()
	c.model = err == nil
	return c
}

// HeadSize is the number of bytes of an object that OfHead needs.
const HeadSize = 16

// OfHead returns the name of an object's class, in Java's spelling. head has the object's first HeadSize bytes.
func (c *ClassNames) OfHead(head []byte) (string, error) {
	if !c.model || len(head) < HeadSize {
		return "", ErrMissing
	}
	return c.OfKlass(c.klasses.klassIn(head))
}

// OfKlass returns the name of the class whose Klass is at an address, in Java's spelling.
func (c *ClassNames) OfKlass(klass uint64) (string, error) {
	if klass == 0 || klass%8 != 0 {
		return "", ErrMoved
	}
	name, err := c.vm.klassName(klass)
	if err != nil {
		return "", err
	}
	return JavaName(name), nil
}

// primitives are the names of types in descriptors (JVMS 4.3.2).
var primitives = map[string]string{"B": "byte", "C": "char", "D": "double", "F": "float", "I": "int", "J": "long",
	"S": "short", "Z": "boolean"}

// JavaName converts the JVM's name of a class to Java's spelling: [[Ljava/lang/String; is java.lang.String[][].
func JavaName(name string) string {
	element := strings.TrimLeft(name, "[")
	depth := len(name) - len(element)
	if depth > 0 {
		if full, ok := primitives[element]; ok {
			element = full
		} else if strings.HasPrefix(element, "L") && strings.HasSuffix(element, ";") {
			element = element[1 : len(element)-1]
		}
	}
	return strings.ReplaceAll(element, "/", ".") + strings.Repeat("[]", min(depth, maxDimensions))
}

// maxDimensions is the most dimensions of an array (JVMS 4.4.1).
const maxDimensions = 255
