package truth;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * Proves: what others say of the same threads is what goprof says (TestWitnesses).
 *
 * The threads of Parked stand still, and two whose stacks are Java and C in turns (witness.c):
 * "jni-upcall" is Java's, "jni-attached" one that C has made. "threads" prints the names of all.
 * Argument: the library of witness.c.
 */
public final class Witness {
    private Witness() {}

    private static final int LEVELS = 3;
    private static final int PASSED = 40;

    /** A thread that stands in stand(), and the gate that holds it. */
    private static final class Standing {
        final Thread thread = Thread.currentThread();
        final Gate gate = new Gate();
    }

    private static final List<Standing> standing = Collections.synchronizedList(new ArrayList<Standing>());
    private static volatile int result;

    private static native int up(int levels);

    private static native boolean attach(int levels);

    /** Called by C: goes back to it while levels are left, and stands still then. */
    private static int stand(int levels) {
        if (levels > 0) {
            return 1 + up(levels);
        }
        Standing here = new Standing();
        here.gate.shut();
        standing.add(here);
        return here.gate.pass(PASSED);
    }

    public static void main(String[] args) throws Exception {
        System.load(args[0]);
        Parked[] parked = Parked.all();
        for (Parked kind : parked) {
            kind.thread.start();
            while (!kind.standsStill()) {
                Thread.sleep(2);
            }
        }
        Parked.invalidate();
        Thread upcall = new Thread(() -> result = up(LEVELS), "jni-upcall");
        upcall.setDaemon(true);
        upcall.start();
        awaitStanding(1);
        Control.check(attach(LEVELS), "C cannot make a thread");
        awaitStanding(2);
        Control.serve((command, out) -> {
            Control.check(command.equals("threads"), "no such command: " + command);
            for (Parked kind : parked) {
                out.println(kind.name);
            }
            for (Standing here : standing) {
                out.println(here.thread.getName());
            }
        }, () -> {
            for (Parked kind : parked) {
                kind.verify();
            }
            for (Standing here : standing) {
                here.gate.open(here.thread);
            }
            upcall.join(20_000);
            // up, the upcall and stand add one each on all levels but the last, where stand adds nothing.
            int expected = PASSED + 3 * LEVELS - 1;
            Control.check(result == expected, "jni-upcall: " + result + ", not " + expected);
        });
    }

    private static void awaitStanding(int count) throws InterruptedException {
        while (standing.size() < count || standing.get(count - 1).thread.getState() != Thread.State.WAITING) {
            Thread.sleep(1);
        }
    }
}
