package naming

// Class returns the readable name of a class, with dots. Parts that differ from run to run are removed.
func Class(class string) string { return hidden(class) }
