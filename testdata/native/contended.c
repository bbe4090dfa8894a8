/* The native methods of testdata/java/Contended.java: each adds up its arguments. */
#include <jni.h>

JNIEXPORT jint JNICALL Java_truth_Contended_ofClass(JNIEnv *env, jclass cls, jint a, jlong b, jobject c, jint d)
{
	return a + (jint) b + d;
}

JNIEXPORT jint JNICALL Java_truth_Contended_ofInstance(JNIEnv *env, jobject self, jint a, jlong b, jobject c, jint d, jdouble e)
{
	return a + (jint) b + d + (jint) e;
}
