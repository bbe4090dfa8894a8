package truth;

import java.util.ArrayList;
import java.util.List;

/**
 * Proves: a sample's time is the program's own System.nanoTime(). A thread runs "hot" for 50 ms, then "cold" for as
 * long, in turn. "phases" prints when each phase of the last minute began and ended by that clock, and when it ended
 * by System.currentTimeMillis():
 *
 *   hot 81234567890123 81234617890500 1790000000123
 */
public final class Phases implements Runnable {
    private static final int KEPT = 1200;

    private final List<String> phases = new ArrayList<>();
    private static volatile int sink;

    private Phases() {}

    public static void main(String[] args) {
        Phases both = new Phases();
        Thread thread = new Thread(both, "phases");
        thread.setDaemon(true);
        thread.start();
        Control.serve((command, out) -> {
            Control.check(command.equals("phases"), "no such command: " + command);
            synchronized (both) {
                both.phases.forEach(out::println);
            }
        }, () -> Control.check(thread.isAlive(), "it has ended"));
    }

    @Override
    public void run() {
        while (true) {
            long begun = System.nanoTime();
            hot(begun + 50_000_000);
            long between = System.nanoTime();
            note("hot", begun, between);
            cold(between + 50_000_000);
            note("cold", between, System.nanoTime());
        }
    }

    private synchronized void note(String name, long from, long to) {
        if (phases.size() == KEPT) {
            phases.remove(0);
        }
        phases.add(name + " " + from + " " + to + " " + System.currentTimeMillis());
    }

    private static void hot(long end) {
        while (System.nanoTime() < end) {
            sink++;
        }
    }

    private static void cold(long end) {
        while (System.nanoTime() < end) {
            sink--;
        }
    }
}
