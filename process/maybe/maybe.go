// Package maybe holds facts that may not be known. An unknown fact is not zero, and code that shows it must say that it
// is not known.
package maybe

import "fmt"

// Value is a fact of type T that may not be known. The zero Value is not known.
type Value[T any] struct {
	value T
	known bool
}

// Known returns a known fact.
func Known[T any](v T) Value[T] { return Value[T]{v, true} }

// If returns a fact that is known if ok is true. Its parameters fit the two results of a function.
func If[T any](v T, ok bool) Value[T] {
	if !ok {
		return Value[T]{}
	}
	return Known(v)
}

// Get returns the fact. ok is false if it is not known.
func (m Value[T]) Get() (v T, ok bool) { return m.value, m.known }

func (m Value[T]) IsKnown() bool { return m.known }

// Or returns the fact, or otherwise if it is not known.
func (m Value[T]) Or(otherwise T) T {
	if m.known {
		return m.value
	}
	return otherwise
}

// Pointer points to a copy of the fact. It is nil if the fact is not known.
func (m Value[T]) Pointer() *T {
	if !m.known {
		return nil
	}
	return &m.value
}

func (m Value[T]) String() string {
	if !m.known {
		return "not known"
	}
	return fmt.Sprint(m.value)
}
