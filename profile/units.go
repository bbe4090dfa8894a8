package profile

// InUnits is an amount of bytes in the largest unit of 1,024 that it has one of; of less than 1 KiB it is in bytes, and
// unit is empty.
func InUnits(n float64) (amount float64, unit string) {
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB", "PiB"} {
		if n < 1024 {
			break
		}
		n, unit = n/1024, larger
	}
	return n, unit
}
