//go:build amd64 || arm64

#include "textflag.h"

// What is said where there is no runtime yet to say it (TestTooLittleAddressSpace).
DATA ·message+0(SB)/8, $"goprof: "
DATA ·message+8(SB)/8, $"cannot r"
DATA ·message+16(SB)/8, $"un: it m"
DATA ·message+24(SB)/8, $"ay use t"
DATA ·message+32(SB)/8, $"oo littl"
DATA ·message+40(SB)/8, $"e addres"
DATA ·message+48(SB)/8, $"s space "
DATA ·message+56(SB)/8, $"(ulimit "
DATA ·message+64(SB)/8, $"-v), and"
DATA ·message+72(SB)/8, $" Go's ru"
DATA ·message+80(SB)/8, $"ntime ne"
DATA ·message+88(SB)/8, $"eds 1.5 "
DATA ·message+96(SB)/8, $"GB of it"
DATA ·message+104(SB)/8, $", of whi"
DATA ·message+112(SB)/8, $"ch it us"
DATA ·message+120(SB)/8, $"es some "
DATA ·message+128(SB)/8, $"50 MB\ntr"
DATA ·message+136(SB)/8, $"y: ulimi"
DATA ·message+144(SB)/8, $"t -v unl"
DATA ·message+152(SB)/8, $"imited\n\x00"
GLOBL ·message(SB), RODATA|NOPTR, $160
