// Package disasm writes instructions of the CPU that goprof itself runs on as text. Machine code is shown of live
// processes only, and these have that CPU. So a binary holds one decoder: x86asm takes 393 KB, arm64asm 172 KB.
//
// It takes bytes of any origin, and returns text, or false for what the decoder does not know. Package arch knows more
// instructions, so it decides how long an instruction is and where it leads: Text believes the decoder only where both
// agree about the length.
package disasm
