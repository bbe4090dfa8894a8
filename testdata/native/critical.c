/*
 * The native method of truth.Critical: it works on an array that the collector must not move meanwhile.
 */
#include <jni.h>

static __attribute__((noinline)) jlong critical_sum(const jint *values, jint length, jint rounds) {
    jlong sum = 0;
    for (jint round = 0; round < rounds; round++) {
        for (jint i = 0; i < length; i++) {
            sum += values[i] ^ round;
            __asm__ volatile("" : "+r"(sum));
        }
    }
    return sum;
}

JNIEXPORT jlong JNICALL Java_truth_Critical_sum(JNIEnv *env, jclass class, jintArray array, jint rounds) {
    (void)class;
    jint length = (*env)->GetArrayLength(env, array);
    jint *values = (*env)->GetPrimitiveArrayCritical(env, array, NULL);
    if (values == NULL) {
        return -1;
    }
    jlong sum = critical_sum(values, length, rounds);
    (*env)->ReleasePrimitiveArrayCritical(env, array, values, JNI_ABORT);
    return sum;
}
