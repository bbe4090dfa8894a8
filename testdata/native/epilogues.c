/*
 * A function whose unwind table does not say that its epilogue takes the frame away: for TestEpilogues. It leaves words on the
 * stack that look like return addresses.
 */
#include <stdio.h>

void without_rows(void);

__attribute__((noinline)) void middle(void) {
    without_rows();
    __asm__ volatile("" ::: "memory");
}

__attribute__((noinline)) void outer(void) {
    middle();
    __asm__ volatile("" ::: "memory");
}

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl without_rows\n"
        ".type without_rows, @function\n"
        "without_rows:\n"
        ".cfi_startproc\n"
        "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\n"
        "push %rbx\n.cfi_def_cfa_offset 24\n.cfi_offset %rbx, -24\n"
        "push %r12\n.cfi_def_cfa_offset 32\n.cfi_offset %r12, -32\n"
        "push %r13\n.cfi_def_cfa_offset 40\n.cfi_offset %r13, -40\n"
        "sub $24, %rsp\n.cfi_def_cfa_offset 64\n"
        "lea outer(%rip), %rbx\n"
        "add $9, %rbx\n"
        "mov %rbx, (%rsp)\n"
        "mov %rbx, 8(%rsp)\n"
        "mov %rbx, 16(%rsp)\n"
        "mov $3, %ebp\n"
        "1: dec %ebp\n"
        "jnz 1b\n"
        "add $24, %rsp\n"
        "pop %r13\n"
        "pop %r12\n"
        "pop %rbx\n"
        "pop %rbp\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size without_rows, .-without_rows\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl without_rows\n"
        ".type without_rows, %function\n"
        "without_rows:\n"
        ".cfi_startproc\n"
        "stp x29, x30, [sp, #-48]!\n.cfi_def_cfa_offset 48\n.cfi_offset 29, -48\n.cfi_offset 30, -40\n"
        "stp x19, x20, [sp, #16]\n.cfi_offset 19, -32\n.cfi_offset 20, -24\n"
        "adr x19, outer\n"
        "add x19, x19, #12\n"
        "str x19, [sp, #32]\n"
        "mov x20, #3\n"
        "1: subs x20, x20, #1\n"
        "b.ne 1b\n"
        "ldp x19, x20, [sp, #16]\n"
        "ldp x29, x30, [sp], #48\n"
        "ret\n"
        ".cfi_endproc\n"
        ".size without_rows, .-without_rows\n");
#endif

int main(void) {
    puts("READY");
    fflush(stdout);
    for (;;) {
        outer();
    }
}
