package truth;

/**
 * Proves: shares of a wall-clock recording are shares of time. A thread sleeps for 30 ms and spins for 10 ms,
 * in turn, and measures how long it did each; "times" prints that in nanoseconds since the command before:
 *
 *   TIMES 3012345678 1004567890
 */
public final class Alternating implements Runnable {
    private long slept, spun;
    private static volatile int sink;

    private Alternating() {}

    public static void main(String[] args) {
        Alternating both = new Alternating();
        Thread thread = new Thread(both, "alternating");
        thread.setDaemon(true);
        thread.start();
        Control.serve((command, out) -> {
            Control.check(command.equals("times"), "no such command: " + command);
            synchronized (both) {
                out.println("TIMES " + both.slept + " " + both.spun);
                both.slept = both.spun = 0;
            }
        }, () -> Control.check(thread.isAlive(), "it has ended"));
    }

    @Override
    public void run() {
        while (true) {
            long a = System.nanoTime();
            rest();
            long b = System.nanoTime();
            work();
            long c = System.nanoTime();
            synchronized (this) {
                slept += b - a;
                spun += c - b;
            }
        }
    }

    private static void rest() {
        try {
            Thread.sleep(30);
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
    }

    private static void work() {
        for (long end = System.nanoTime() + 10_000_000; System.nanoTime() < end;) {
            sink++;
        }
    }
}
