// A program that makes its JVM itself, as servers written in C and Python's bridges do:
//   launcher libjvm.so -Djava.class.path=... pkg/Main ARGUMENT...
#include <dlfcn.h>
#include <jni.h>
#include <stdio.h>

int main(int count, char **words) {
    void *library = count < 4 ? NULL : dlopen(words[1], RTLD_NOW | RTLD_GLOBAL);
    jint (*create)(JavaVM **, void **, void *) = library ? dlsym(library, "JNI_CreateJavaVM") : NULL;
    JavaVMOption option = {.optionString = words[2]};
    JavaVMInitArgs args = {.version = JNI_VERSION_1_8, .nOptions = 1, .options = &option};
    JavaVM *vm;
    JNIEnv *env;
    if (!create || create(&vm, (void **)&env, &args)) {
        fputs("no JVM\n", stderr);
        return 1;
    }
    jobjectArray list = (*env)->NewObjectArray(env, count - 4, (*env)->FindClass(env, "java/lang/String"), NULL);
    for (int i = 4; i < count; i++)
        (*env)->SetObjectArrayElement(env, list, i - 4, (*env)->NewStringUTF(env, words[i]));
    jclass program = (*env)->FindClass(env, words[3]);
    (*env)->CallStaticVoidMethod(env, program, (*env)->GetStaticMethodID(env, program, "main", "([Ljava/lang/String;)V"),
                                 list);
    return (*vm)->DestroyJavaVM(vm);
}
