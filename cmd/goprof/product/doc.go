//go:build linux

// Package product makes the file that a recording becomes, in any format: while it is recorded (JFR), or of what was
// recorded at the end. A product has the file's name only when there are samples. If names may not be shown, a product
// is given none.
package product
