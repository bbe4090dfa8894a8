#include <jni.h>
#include <unistd.h>
JNIEXPORT void JNICALL Java_SyncNat_hold(JNIEnv*e,jclass c,jint a,jlong b,jobject o,jint d){ sleep(a);}
JNIEXPORT void JNICALL Java_SyncNat_held(JNIEnv*e,jclass c,jint a,jlong b,jobject o,jint d){ if(a) sleep(a);}
JNIEXPORT void JNICALL Java_SyncNat_heldI(JNIEnv*e,jclass c,jint a,jlong b,jobject o,jint d,jdouble x){ if(a) sleep(a);}
