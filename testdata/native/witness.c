/*
 * The native methods of truth.Witness: C that calls Java that calls C, on a thread of Java's and on one that C
 * has made, with symbols and unwind information, as ordinary libraries have them.
 */
#include <jni.h>
#include <pthread.h>

#define NOINLINE static __attribute__((noinline))

static JavaVM *machine;
static jclass witness;
static jmethodID stand; /* static int stand(int levels) */

/* What is added after each call keeps it a call: the compiler could make a jump of the last thing that a function does. */
NOINLINE jint witness_upcall(JNIEnv *env, jint levels) {
    return 1 + (*env)->CallStaticIntMethod(env, witness, stand, levels - 1);
}

JNIEXPORT jint JNICALL Java_truth_Witness_up(JNIEnv *env, jclass class, jint levels) {
    (void)class;
    return 1 + witness_upcall(env, levels);
}

NOINLINE void *witness_root(void *levels) {
    JNIEnv *env;
    JavaVMAttachArgs args = {JNI_VERSION_1_8, "jni-attached", NULL};
    if ((*machine)->AttachCurrentThreadAsDaemon(machine, (void **)&env, &args) == JNI_OK) {
        witness_upcall(env, (jint)(jlong)levels);
        (*machine)->DetachCurrentThread(machine);
    }
    return NULL;
}

JNIEXPORT jboolean JNICALL Java_truth_Witness_attach(JNIEnv *env, jclass class, jint levels) {
    (void)env, (void)class;
    pthread_t thread;
    return pthread_create(&thread, NULL, witness_root, (void *)(jlong)levels) == 0;
}

JNIEXPORT jint JNI_OnLoad(JavaVM *vm, void *reserved) {
    JNIEnv *env;
    (void)reserved;
    machine = vm;
    if ((*vm)->GetEnv(vm, (void **)&env, JNI_VERSION_1_8) != JNI_OK) {
        return JNI_ERR;
    }
    jclass class = (*env)->FindClass(env, "truth/Witness");
    if (class == NULL || (witness = (*env)->NewGlobalRef(env, class)) == NULL ||
        (stand = (*env)->GetStaticMethodID(env, class, "stand", "(I)I")) == NULL) {
        return JNI_ERR;
    }
    return JNI_VERSION_1_8;
}
