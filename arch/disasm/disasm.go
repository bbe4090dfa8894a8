// Package disasm writes instructions of the CPU that goprof itself runs on as text. Machine code is shown of live
// processes, and these have that CPU. So a binary holds one decoder: x86asm takes 393 KB, arm64asm 172 KB.
//
// What you give is bytes of any origin. What you get is text, or false for what the decoder does not know. How long an
// instruction is, and where it leads, says package arch, which knows more instructions: Text believes the decoder only
// where both agree about the length.
package disasm
