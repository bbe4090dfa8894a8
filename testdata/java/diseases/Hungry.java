package truth;

/**
 * Threads that want a CPU most of the time, for many kinds of work, so that no method is hot. Whether they are ill is the
 * machine's matter: a limit of a control group (cpu-throttled), or other programs beside them (cpu-short).
 * Sick: four threads that hardly rest.
 * Well: one, that rests nine parts of ten.
 */
public final class Hungry {
    static volatile long sink;

    static long w0(int n) { long x = n; for (int i = 0; i < n; i++) x = x * 31 + i; return x; }
    static long w1(int n) { long x = n; for (int i = 0; i < n; i++) x ^= x << 13 ^ i; return x; }
    static long w2(int n) { long x = n; for (int i = 0; i < n; i++) x += x >>> 7 ^ i; return x; }
    static long w3(int n) { long x = n; for (int i = 0; i < n; i++) x -= x << 5 ^ i; return x; }
    static long w4(int n) { long x = n; for (int i = 0; i < n; i++) x = x * 17 ^ i; return x; }
    static long w5(int n) { long x = n; for (int i = 0; i < n; i++) x = x * 13 - i; return x; }
    static long w6(int n) { long x = n; for (int i = 0; i < n; i++) x = (x ^ i) * 7; return x; }
    static long w7(int n) { long x = n; for (int i = 0; i < n; i++) x = (x + i) * 5; return x; }
    static long w8(int n) { long x = n; for (int i = 0; i < n; i++) x = (x - i) * 3; return x; }
    static long w9(int n) { long x = n; for (int i = 0; i < n; i++) x = (x | i) * 11; return x; }

    static long all(int n) {
        return w0(n) + w1(n) + w2(n) + w3(n) + w4(n) + w5(n) + w6(n) + w7(n) + w8(n) + w9(n);
    }

    public static void main(String[] args) {
        boolean sick = Ward.sick(args);
        for (int i = 0; i < (sick ? 4 : 1); i++) {
            Ward.forever("hungry-" + i, () -> {
                long until = System.nanoTime() + 2_000_000;
                while (System.nanoTime() < until) sink += all(500);
                Thread.sleep(sick ? 0 : 18);
            });
        }
        Ward.serve();
    }
}
