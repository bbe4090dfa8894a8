/*
 * A JVMTI agent that asks for more than most do, for testdata/oracle/matrix_ready_test.go. Its option:
 *   events   compiled methods, classes as they are read and prepared, exceptions, collections, threads, contended monitors
 *   calls    those, and every call and return of all threads, which run interpreted then
 * It only counts. The capabilities matter as much: local variables and objects that can be looked at change what is compiled.
 */
#include <jvmti.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_long events;

static void JNICALL on_compiled(jvmtiEnv *jvmti, jmethodID method, jint size, const void *code, jint maps,
                                const jvmtiAddrLocationMap *map, const void *info)
{
    atomic_fetch_add(&events, 1);
}

static void JNICALL on_class_file(jvmtiEnv *jvmti, JNIEnv *env, jclass redefined, jobject loader, const char *name,
                                  jobject domain, jint length, const unsigned char *data, jint *new_length,
                                  unsigned char **new_data)
{
    atomic_fetch_add(&events, 1);
}

static void JNICALL on_prepare(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jclass type)
{
    atomic_fetch_add(&events, 1);
}

static void JNICALL on_exception(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jmethodID method, jlocation at,
                                 jobject exception, jmethodID catcher, jlocation catch_at)
{
    atomic_fetch_add(&events, 1);
}

static void JNICALL on_catch(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jmethodID method, jlocation at,
                             jobject exception)
{
    atomic_fetch_add(&events, 1);
}

static void JNICALL on_entry(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jmethodID method)
{
    atomic_fetch_add(&events, 1);
}

static void JNICALL on_exit(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jmethodID method, jboolean thrown,
                            jvalue value)
{
    atomic_fetch_add(&events, 1);
}

static void JNICALL on_contended(jvmtiEnv *jvmti, JNIEnv *env, jthread thread, jobject object)
{
    atomic_fetch_add(&events, 1);
}

static void JNICALL on_collection(jvmtiEnv *jvmti)
{
    atomic_fetch_add(&events, 1);
}

#define MUST(call)                                                              \
    do {                                                                        \
        jvmtiError e = (call);                                                  \
        if (e != JVMTI_ERROR_NONE) {                                            \
            fprintf(stderr, "agent.c:%d: JVMTI error %d\n", __LINE__, (int)e);  \
            return JNI_ERR;                                                     \
        }                                                                       \
    } while (0)

JNIEXPORT jint JNICALL Agent_OnLoad(JavaVM *vm, char *options, void *reserved)
{
    static const jvmtiEvent always[] = {
        JVMTI_EVENT_COMPILED_METHOD_LOAD, JVMTI_EVENT_CLASS_FILE_LOAD_HOOK, JVMTI_EVENT_CLASS_PREPARE,
        JVMTI_EVENT_EXCEPTION, JVMTI_EVENT_EXCEPTION_CATCH, JVMTI_EVENT_MONITOR_CONTENDED_ENTER,
        JVMTI_EVENT_GARBAGE_COLLECTION_START, JVMTI_EVENT_GARBAGE_COLLECTION_FINISH,
    };
    jvmtiEnv *jvmti;
    if ((*vm)->GetEnv(vm, (void **)&jvmti, JVMTI_VERSION_1_2) != JNI_OK) {
        return JNI_ERR;
    }
    int calls = options != NULL && strcmp(options, "calls") == 0;
    jvmtiCapabilities want = {
        .can_generate_compiled_method_load_events = 1,
        .can_generate_all_class_hook_events = 1,
        .can_generate_exception_events = 1,
        .can_generate_monitor_events = 1,
        .can_generate_garbage_collection_events = 1,
        .can_access_local_variables = 1,
        .can_tag_objects = 1,
        .can_pop_frame = 1,
        .can_get_line_numbers = 1,
        .can_retransform_classes = 1,
        .can_generate_method_entry_events = calls,
        .can_generate_method_exit_events = calls,
    };
    MUST((*jvmti)->AddCapabilities(jvmti, &want));
    jvmtiEventCallbacks callbacks = {
        .CompiledMethodLoad = on_compiled,
        .ClassFileLoadHook = on_class_file,
        .ClassPrepare = on_prepare,
        .Exception = on_exception,
        .ExceptionCatch = on_catch,
        .MonitorContendedEnter = on_contended,
        .GarbageCollectionStart = on_collection,
        .GarbageCollectionFinish = on_collection,
        .MethodEntry = on_entry,
        .MethodExit = on_exit,
    };
    MUST((*jvmti)->SetEventCallbacks(jvmti, &callbacks, sizeof callbacks));
    for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) {
        MUST((*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, always[i], NULL));
    }
    if (calls) { /* of all threads: each that is told of runs interpreted from then on */
        MUST((*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_METHOD_ENTRY, NULL));
        MUST((*jvmti)->SetEventNotificationMode(jvmti, JVMTI_ENABLE, JVMTI_EVENT_METHOD_EXIT, NULL));
    }
    return JNI_OK;
}
