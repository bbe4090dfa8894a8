package truth;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/**
 * Proves: threads are shown under the names that Java gave them, whatever characters these hold, and
 * in the state that Java says they are in.
 *
 * One thread stands still for each odd name and each state; "threads" prints them, the name as UTF-16
 * units in hex, so that no encoding lies between the program and the test:
 *
 *   THREAD 0061d83dde00 PARKED
 *
 * "rename" gives the first of them another name and prints that in the same way.
 */
public final class Named {
    private Named() {}

    /** How a thread comes to a stand. */
    interface Way {
        void stand(Object on) throws Exception;
    }

    private static final Object HELD = new Object();
    private static final CountDownLatch NEVER = new CountDownLatch(1);

    private enum State {
        PARKED(on -> LockSupport.park(on)),
        TIMED_PARKED(on -> LockSupport.parkNanos(on, Long.MAX_VALUE)),
        SLEEPING(on -> Thread.sleep(Integer.MAX_VALUE)),
        WAITING(on -> {
            synchronized (on) {
                on.wait();
            }
        }),
        TIMED_WAITING(on -> {
            synchronized (on) {
                on.wait(Integer.MAX_VALUE);
            }
        }),
        BLOCKED(on -> {
            synchronized (HELD) {
                on.notify();
            }
        });

        final Way way;

        State(Way way) {
            this.way = way;
        }

        /** What Thread.getState() says, which does not tell parking from waiting. */
        Thread.State javas() {
            switch (this) {
                case PARKED:
                case WAITING:
                    return Thread.State.WAITING;
                case BLOCKED:
                    return Thread.State.BLOCKED;
                default:
                    return Thread.State.TIMED_WAITING;
            }
        }
    }

    private static final String[] NAMES = {
        "plain",
        "caf\u00e9",                                    // Latin-1
        "\u65e5\u672c\u8a9e \u20ac",                    // UTF-16
        "astral \ud83d\ude00\ud835\udd4f",              // two units each
        "high half \ud83d.", "low half \ude00.", "halves the wrong way round \ude00\ud83d",
        "semi;colon", "line\nbreak\ttab\rreturn", "nul \0 and \u0001",
        "quote \" backslash \\ brace {", "[brackets tid=1]", "ends like a suffix_[j]",
        "from right \u202eto left", "two\u2028lines", " blanks ",
        repeat("long-", 200), repeat("\u65e5\u672c", 500),
    };

    private static String repeat(String text, int times) {
        return new String(new char[times]).replace("\0", text);
    }

    public static void main(String[] args) throws Exception {
        State[] states = State.values();
        Thread[] threads = new Thread[NAMES.length + states.length];
        for (int i = 0; i < threads.length; i++) {
            State state = stateOf(i);
            threads[i] = new Thread(() -> standForEver(state), i < NAMES.length ? NAMES[i] : "is " + state);
            threads[i].setDaemon(true);
        }
        synchronized (HELD) {
            for (Thread thread : threads) {
                thread.start();
            }
            for (int i = 0; i < threads.length; i++) {
                while (threads[i].getState() != stateOf(i).javas()) {
                    Thread.sleep(1);
                }
            }
            Control.serve((command, out) -> {
                if (command.equals("rename")) {
                    threads[0].setName("renamed \ud83d\ude80");
                    out.println(line(threads[0], stateOf(0)));
                    return;
                }
                Control.check(command.equals("threads"), "no such command: " + command);
                for (int i = 0; i < threads.length; i++) {
                    out.println(line(threads[i], stateOf(i)));
                }
            }, () -> {
                for (int i = 0; i < threads.length; i++) {
                    Control.check(threads[i].getState() == stateOf(i).javas(), threads[i] + " moved: " + threads[i].getState());
                }
            });
        }
    }

    private static State stateOf(int number) {
        return number < NAMES.length ? State.PARKED : State.values()[number - NAMES.length];
    }

    private static void standForEver(State state) {
        Object on = new Object();
        try {
            while (NEVER.getCount() > 0) { // park may return without a cause
                state.way.stand(on);
            }
        } catch (Exception thrown) {
            throw new IllegalStateException(thrown);
        }
    }

    private static String line(Thread thread, State state) {
        StringBuilder hex = new StringBuilder();
        for (char unit : thread.getName().toCharArray()) {
            hex.append(String.format("%04x", (int) unit));
        }
        return "THREAD " + hex + " " + state;
    }
}
