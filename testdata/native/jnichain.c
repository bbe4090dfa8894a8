/*
 * The native methods of truth.JniChain: C between Java and Java, in the shapes that make unwinding hard.
 * testdata/oracle/stacks_jni_build_test.go compiles it twice, with LIB=Cfi and LIB=Bare: with unwind
 * information and symbols, and without both. FIRST is the shadow's id of the first function.
 *
 * Each shape is a native method, NAME(shape, outer), and the function that it calls,
 * NAME(shape, inner). Both keep the shadow stack of truth.JniShadow as Java methods do: the first
 * thing that they do is to push their id, the last one to pop it. Neither ends with a call, which the
 * compiler could make a jump.
 */
#include <alloca.h>
#include <jni.h>
#include <pthread.h>
#include <stdint.h>
#include <time.h>

#define JOIN(shape, lib, part) shape##lib##_##part
#define EXPAND(shape, lib, part) JOIN(shape, lib, part)
#define NAME(shape, part) EXPAND(shape, LIB, part)
#define TEXT(text) #text
#define EXPANDED_TEXT(text) TEXT(text)

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline, noclone))

/* The shadow: truth.JniShadow tells its layout. */
static volatile uint32_t *shadow;
enum { DEPTH = 2, ENTRIES = 4 };

INLINE void push(uint32_t id) {
    uint32_t depth = shadow[DEPTH];
    shadow[ENTRIES + 2 * depth] = id;
    shadow[ENTRIES + 2 * depth + 1] = 0; /* the line: none */
    shadow[DEPTH] = depth + 1;
}

INLINE void pop(void) { shadow[DEPTH]--; }

enum { SHAPES = 5 };

/* What a method does at its end is in the lowest four bits of "then"; what the next one does, which an
 * OTHER calls, in those above. truth.JniChain has the same numbers. */
enum { BACK, OTHER, SPIN, SLEEP, FIELD };

typedef jint (*method)(JNIEnv *, jclass, jint then, jint levels);

static method *others; /* the methods of the library that is compiled the other way */
static jmethodID back; /* int back(int levels) */
static jobject object;
static jfieldID field; /* int */

/* HotSpot has generated code for this JNI function: C calls it without entering the VM. */
INLINE jint readFields(JNIEnv *env) {
    jint sum = 0;
    for (int i = 0; i < 500; i++) {
        sum += (*env)->GetIntField(env, object, field);
    }
    return sum - 500 * 7;
}

INLINE jint spin(void) {
    volatile jint turns = 0;
    while (turns < 3000) {
        turns++;
    }
    return 0;
}

INLINE jint leave(JNIEnv *env, jclass class, jint then, jint levels) {
    switch (then & 15) {
    case BACK:
        return (*env)->CallStaticIntMethod(env, class, back, levels);
    case OTHER:
        return others[(uint32_t)then % SHAPES](env, class, then >> 4, levels);
    case FIELD:
        return readFields(env);
    case SLEEP:
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        return 0;
    default:
        return spin();
    }
}

/* The shapes: what a function does around its call. */
#define PLAIN(call) call

/* The frame's size is known only when it runs. */
#define ALLOCA(call)                                                      \
    volatile char *room = alloca(64 + (levels & 7) * 40 + (then & 15) * 8); \
    room[0] = 1;                                                          \
    call;                                                                 \
    room[1] = 2

/* The stack pointer is rounded down: how far away the caller's frame is depends on where that was. */
#define REALIGNED(call)                                 \
    _Alignas(64) volatile char room[192];               \
    room[levels & 63] = 1;                              \
    __asm__ volatile("" : : "r"(room) : "memory");      \
    call;                                               \
    room[then & 63] = 2

/* Both: gcc keeps the caller's frame in a register of its own, and where that is saved is told by an
 * expression (DW_CFA_def_cfa_expression). */
#define EXPRESSION(call)                                        \
    volatile char *more = alloca(64 + (levels & 7) * 40);       \
    more[0] = 1;                                                \
    REALIGNED(call);                                            \
    more[1] = 2

/* All registers that belong to the caller hold something else during the call, and the frame
 * pointer points to what looks like a frame. */
#if defined(__x86_64__)
#define REGISTERS(_) _(0, "rbp") _(1, "rbx") _(2, "r12") _(3, "r13") _(4, "r14") _(5, "r15")
#define USES "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3), "+r"(r4), "+r"(r5)
#elif defined(__aarch64__) /* but for x29, which gcc may need for the frame all the same */
#define REGISTERS(_)                                                                                    \
    _(0, "x19") _(1, "x20") _(2, "x21") _(3, "x22") _(4, "x23") _(5, "x24") _(6, "x25") _(7, "x26")     \
    _(8, "x27") _(9, "x28")
#define USES                                                                                     \
    "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3), "+r"(r4), "+r"(r5), "+r"(r6), "+r"(r7), "+r"(r8), "+r"(r9)
#endif
#define HOLD(number, name) register volatile void *r##number __asm__(name) = looksLikeFrame;
#define SAVED(call)                                                                \
    void *volatile looksLikeFrame[4];                                              \
    looksLikeFrame[0] = (void *)&looksLikeFrame[2];                                \
    looksLikeFrame[1] = __builtin_return_address(0);                               \
    looksLikeFrame[2] = (void *)&looksLikeFrame[2];                                \
    looksLikeFrame[3] = looksLikeFrame[1];                                         \
    REGISTERS(HOLD)                                                                \
    __asm__ volatile("" : USES);                                                   \
    call;                                                                          \
    __asm__ volatile("" : USES)

#define DEFINE(shape, number, SHAPE)                                                        \
    NOINLINE jint NAME(shape, inner)(JNIEnv * env, jclass class, jint then, jint levels) {  \
        push(FIRST + 2 * number + 1);                                                       \
        SHAPE(jint result = leave(env, class, then, levels));                               \
        pop();                                                                              \
        return result + 1;                                                                  \
    }                                                                                       \
    NOINLINE jint NAME(shape, outer)(JNIEnv * env, jclass class, jint then, jint levels) {  \
        push(FIRST + 2 * number);                                                           \
        SHAPE(jint result = NAME(shape, inner)(env, class, then, levels));                  \
        pop();                                                                              \
        return result + 1;                                                                  \
    }

DEFINE(plain, 0, PLAIN)
DEFINE(alloca, 1, ALLOCA)
DEFINE(realigned, 2, REALIGNED)
DEFINE(saved, 3, SAVED)
DEFINE(expression, 4, EXPRESSION)

static method methods[SHAPES] = {NAME(plain, outer), NAME(alloca, outer), NAME(realigned, outer), NAME(saved, outer),
                                 NAME(expression, outer)};

/* A thread that C has made: the root of its stack is here, and Java is called. */
static JavaVM *machine;
static jmethodID run; /* void run() */

NOINLINE void *NAME(attached, root)(void *chain) {
    JNIEnv *env;
    push(FIRST + 2 * SHAPES);
    if ((*machine)->AttachCurrentThread(machine, (void **)&env, NULL) == JNI_OK) {
        (*env)->CallVoidMethod(env, chain, run);
        (*machine)->DetachCurrentThread(machine);
    }
    pop();
    return NULL;
}

static jboolean attach(JNIEnv *env, jclass class, jobject chain) {
    pthread_t thread;
    return pthread_create(&thread, NULL, NAME(attached, root), (*env)->NewGlobalRef(env, chain)) == 0;
}

/* table() is where the methods are, for the other library. */
static jlong table(JNIEnv *env, jclass class) { return (jlong)(intptr_t)methods; }

/* init() is told where the shadow is, the other library's table, and an object with an int field of 7. */
static void init(JNIEnv *env, jclass class, jobject buffer, jlong otherTable, jobject o) {
    shadow = (*env)->GetDirectBufferAddress(env, buffer);
    others = (method *)(intptr_t)otherTable;
    back = (*env)->GetStaticMethodID(env, class, "back", "(I)I");
    object = (*env)->NewGlobalRef(env, o);
    field = (*env)->GetFieldID(env, class, "seven", "I");
    run = (*env)->GetMethodID(env, class, "run", "()V");
}

#define METHOD(shape) {EXPANDED_TEXT(EXPAND_METHOD(shape, LIB)), "(II)I", (void *)NAME(shape, outer)}
#define EXPAND_METHOD(shape, lib) JOIN_METHOD(shape, lib)
#define JOIN_METHOD(shape, lib) shape##lib

/* The functions have no names that the linker needs: the VM is told where they are. */
JNIEXPORT jint JNI_OnLoad(JavaVM *vm, void *reserved) {
    JNIEnv *env;
    machine = vm;
    if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_8) != JNI_OK) {
        return JNI_ERR;
    }
    JNINativeMethod natives[] = {
        METHOD(plain),
        METHOD(alloca),
        METHOD(realigned),
        METHOD(saved),
        METHOD(expression),
        {EXPANDED_TEXT(EXPAND_METHOD(table, LIB)), "()J", (void *)table},
        {EXPANDED_TEXT(EXPAND_METHOD(init, LIB)), "(Ljava/nio/ByteBuffer;JLtruth/JniChain;)V", (void *)init},
        {EXPANDED_TEXT(EXPAND_METHOD(attach, LIB)), "(Ltruth/JniChain;)Z", (void *)attach},
    };
    jclass class = (*env)->FindClass(env, "truth/JniChain");
    if (class == NULL || (*env)->RegisterNatives(env, class, natives, sizeof natives / sizeof natives[0]) != 0) {
        return JNI_ERR;
    }
    return JNI_VERSION_1_8;
}
