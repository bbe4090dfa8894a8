// A library that makes code while it runs, as JIT compilers in native libraries do: code that lies in no file and has
// no unwind information. truth.MadeCode tells what it proves.
#include <jni.h>
#include <string.h>
#include <sys/mman.h>

// long made(long n): counts down from n.
#if defined __x86_64__
static const unsigned char loop[] = {
	0x48, 0x89, 0xf8, // mov rax, rdi
	0x48, 0xff, 0xc8, // dec rax
	0x75, 0xfb,       // jnz to dec
	0xc3,             // ret
};
// long madeCall(long n, long (*f)(long)): calls f(n) with a frame of its own.
static const unsigned char call[] = {
	0x48, 0x83, 0xec, 0x18, // sub rsp, 24
	0xff, 0xd6,             // call rsi
	0x48, 0x83, 0xc4, 0x18, // add rsp, 24
	0xc3,                   // ret
};
#elif defined __aarch64__
static const unsigned int loop[] = {
	0xf1000400, // subs x0, x0, #1
	0x54ffffe1, // b.ne to subs
	0xd65f03c0, // ret
};
static const unsigned int call[] = {
	0xf81e0ffe, // str x30, [sp, #-32]!
	0xd63f0020, // blr x1
	0xf84207fe, // ldr x30, [sp], #32
	0xd65f03c0, // ret
};
#endif

static void *page;

JNIEXPORT void JNICALL Java_truth_MadeCode_make(JNIEnv *env, jclass c) {
	char *p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(p, loop, sizeof loop);
	memcpy(p + 4096, call, sizeof call);
	mprotect(p, 8192, PROT_READ | PROT_EXEC);
	__builtin___clear_cache(p, p + 8192);
	page = p;
}

__attribute__((noinline)) long inFile(long n) {
	for (long i = 0; i < n; i++)
		__asm__ volatile("");
	return n;
}

JNIEXPORT jlong JNICALL Java_truth_MadeCode_spin(JNIEnv *env, jclass c, jlong n) {
	return ((long (*)(long))page)(n);
}

JNIEXPORT jlong JNICALL Java_truth_MadeCode_callBack(JNIEnv *env, jclass c, jlong n) {
	return ((long (*)(long, long (*)(long)))((char *)page + 4096))(n, inFile);
}
