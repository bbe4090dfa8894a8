package oracle

// tlsDialects are gcc's names for access to thread-local variables by a function, and by descriptors.
var tlsDialects = [2]string{"gnu", "gnu2"}
