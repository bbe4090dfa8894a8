package naming

// Class is the readable name of a class, in dots: what the next run would name otherwise is taken off.
func Class(class string) string { return hidden(class) }
