package naming

// Class is the readable name of a class, in dots. Parts that differ from run to run are removed.
func Class(class string) string { return hidden(class) }
