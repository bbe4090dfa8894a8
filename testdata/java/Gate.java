package truth;

import java.util.concurrent.locks.LockSupport;

/**
 * Where a thread of Parked ends up. While a kind warms up, pass() returns at once, so that the JIT sees
 * it as a normal call; once the gate is shut, the next pass() parks its thread until the program ends.
 *
 * pass() must not be inlined (the test gives -XX:CompileCommand=dontinline,truth/Gate.pass): its own
 * branch is new when it is first taken, and an uncommon trap would take the caller's frame with it.
 */
final class Gate {
    /** How many more calls of pass() return at once; shared by no two threads. */
    private volatile long left = Long.MAX_VALUE;
    private volatile boolean open;
    volatile boolean reached;

    int pass(int value) {
        if (left-- <= 0) {
            reached = true;
            while (!open) {
                LockSupport.park(this);
            }
        }
        return value;
    }

    void shut() {
        left = 0;
    }

    /** Shuts itself at call number calls + 1, so that the caller needs no branch that is new then. */
    void shutAfter(long calls) {
        left = calls;
    }

    /** For kinds that block on something else than this gate. */
    void blockingNow() {
        reached = true;
    }

    boolean isOpen() {
        return open;
    }

    void open(Thread waiting) {
        open = true;
        LockSupport.unpark(waiting);
    }
}
