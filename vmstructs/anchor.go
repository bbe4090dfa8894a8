package vmstructs

// Anchor is a JavaFrameAnchor. It shows where a thread's Java frames begin while the thread runs other code
// (runtime/javaFrameAnchor.hpp). SP 0 means that there is none. If PC is 0, the pc is in the word below SP.
type Anchor struct{ SP, PC, FP uint64 }
