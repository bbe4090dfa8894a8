/*
 * The native methods of testdata/java/Tracing.java: a tracing agent that publishes by OpenTelemetry's convention for
 * which span a thread works (OTEP 4947). NATIVE(name) is a method's linkage name; each way of access to thread-local
 * variables is a library of its own.
 */
#include <jni.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

struct record {
	uint8_t trace[16], span[8], valid, flags;
	uint16_t attributes;
};

__attribute__((visibility("default"))) __thread struct record *volatile otel_thread_ctx_v1;

static __thread struct record own[2];
static __thread int turn;

#define ORDER atomic_signal_fence(memory_order_seq_cst)

static void fill(volatile struct record *r, int thread, int span)
{
	r->trace[0] = thread;
	r->trace[15] = 0xee;
	r->span[0] = thread;
	r->span[7] = span;
}

/* Attaches another record each time, as agents do that have a record for each span. */
JNIEXPORT void JNICALL NATIVE(swap)(JNIEnv *env, jobject self, jint thread, jint span)
{
	otel_thread_ctx_v1 = NULL;
	ORDER;
	struct record *r = &own[turn ^= 1];
	fill(r, thread, span);
	r->valid = 1;
	ORDER;
	otel_thread_ctx_v1 = r;
}

/* Writes into the record that is attached, as agents do that have a record for each thread. */
JNIEXPORT void JNICALL NATIVE(write)(JNIEnv *env, jobject self, jint thread, jint span)
{
	volatile struct record *r = &own[0];
	r->valid = 0;
	ORDER;
	fill(r, thread, span);
	ORDER;
	r->valid = 1;
	otel_thread_ctx_v1 = (struct record *) r;
}

JNIEXPORT void JNICALL NATIVE(detach)(JNIEnv *env, jobject self)
{
	otel_thread_ctx_v1 = NULL;
}

/* Is in the middle of a write: the ids are another thread's, and not valid. */
JNIEXPORT void JNICALL NATIVE(begin)(JNIEnv *env, jobject self)
{
	own[0].valid = 0;
	ORDER;
	memset(own[0].trace, 0x5a, sizeof own[0].trace + sizeof own[0].span);
	ORDER;
	otel_thread_ctx_v1 = &own[0];
}

/* What no agent should do: half of a record that says it is valid, and a pointer that leads nowhere. */
JNIEXPORT void JNICALL NATIVE(half)(JNIEnv *env, jobject self)
{
	memset(&own[0], 0, sizeof own[0]);
	own[0].trace[0] = 0x5a;
	own[0].valid = 1;
	ORDER;
	otel_thread_ctx_v1 = &own[0];
}

JNIEXPORT void JNICALL NATIVE(stray)(JNIEnv *env, jobject self)
{
	otel_thread_ctx_v1 = (struct record *) 4096;
}
