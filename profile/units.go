package profile

// InUnits returns an amount of bytes in the largest of the units KiB, MiB ... that is not larger than the amount. Less
// than 1 KiB is in bytes, and unit is empty.
func InUnits(n float64) (amount float64, unit string) {
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		if n < 1024 {
			break
		}
		n, unit = n/1024, larger
	}
	return n, unit
}
