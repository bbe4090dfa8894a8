package arm64

import "goprof/arch"

// Operands is described at arch.Code. It is not known here yet.
func (code) Operands([]byte, uint32) (arch.Operands, bool) { return arch.Operands{}, false }
