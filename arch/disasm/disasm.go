// Package disasm writes instructions as text, for the CPU that goprof itself runs on. goprof shows machine code of live
// processes only, and these have the same CPU. So a binary holds one decoder: x86asm takes 393 KB, arm64asm 172 KB.
//
// It takes bytes of any origin, and returns text, or false if the decoder does not know the instruction. Package arch
// knows more instructions, so it decides how long an instruction is and where it leads. Text believes the decoder only
// if both agree about the length.
package disasm
