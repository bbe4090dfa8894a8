// What TestLanguages samples: each name that Kotlin's compiler mangles, and some that only look like that.
package shop

import kotlinx.coroutines.*

@JvmInline
value class Meters(val v: Int) {
    fun twice(): Meters { spin(); return Meters(v * 2) }
}

fun spin() {
    val end = System.nanoTime() + 5_000_000L
    while (System.nanoTime() < end) {}
}

fun walk(m: Meters, deep: Int = 1): Int { spin(); return m.v + deep }
fun `my slow-Function`() { spin() }
fun `plain-default`() { spin() }

class Box {
    suspend fun slow(m: Meters): Int { spin(); delay(1); spin(); return m.v }
    fun withDefault(a: Int = 3): Int { spin(); return a }
}

fun main() {
    while (true) {
        runBlocking { launch(Dispatchers.Default) { Box().slow(Meters(3)) } }
        walk(Meters(2))
        Meters(3).twice()
        `my slow-Function`()
        `plain-default`()
        Box().withDefault()
        val f: (Int) -> Int = { spin(); it }
        f(3)
        "a b\nc".split("a", "b").forEach { spin() }
    }
}
