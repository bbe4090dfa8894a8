// Package disasm writes instructions as text, for the CPU that goprof itself runs on. goprof shows machine code of live
// processes only, and these have the same CPU. So a binary holds one decoder: x86asm takes 393 KB, arm64asm 172 KB.
//
// The bytes may be of any origin. Package arch knows more instructions than the decoder, so arch decides how long an
// instruction is and where it leads. If the decoder does not know the instruction, or disagrees about its length, Text
// returns false.
package disasm
