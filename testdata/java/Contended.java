package truth;

/**
 * Two threads that wait for the monitors of synchronized native methods, compiled: their wrappers have
 * pushed the arguments before they wait, so that their frames are larger than they say.
 *
 * Argument: the library of testdata/native/contended.c.
 */
public final class Contended {
    /** Enough calls for native wrappers, and for their callers to be compiled. */
    private static final int WARM = 20_000;

    static synchronized native int ofClass(int a, long b, Object c, int d);

    synchronized native int ofInstance(int a, long b, Object c, int d, double e);

    /** Holds no frame of its own but calls, so that it is what the walk must find next. */
    private static int call(Contended on, boolean isStatic) {
        return isStatic ? ofClass(1, 2, on, 3) : on.ofInstance(1, 2, on, 3, 4.0);
    }

    public static void main(String[] args) throws Exception {
        System.load(args[0]);
        Contended on = new Contended();
        for (int i = 0; i < WARM; i++) {
            Control.check(call(on, true) == 6 && call(on, false) == 10, "a native method gave another number");
        }
        int[] results = new int[2];
        Thread[] waiters = new Thread[2];
        synchronized (Contended.class) {
            synchronized (on) {
                for (int i = 0; i < waiters.length; i++) {
                    int number = i;
                    waiters[i] = new Thread(() -> results[number] = call(on, number == 0), "waiter-" + i);
                    waiters[i].start();
                }
                for (Thread waiter : waiters) {
                    while (waiter.getState() != Thread.State.BLOCKED) {
                        Thread.sleep(1);
                    }
                }
                Control.serve((command, out) -> Control.check(false, "no such command: " + command),
                    () -> Control.check(results[0] == 0 && results[1] == 0, "a thread did not wait"));
            }
        }
    }
}
