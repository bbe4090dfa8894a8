package truth;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Proves: deadlocks of each kind are told, and threads that only wait long are not said to be deadlocked. Arguments: the
 * kinds. Each kind has threads of its own, of the names KIND-1 and KIND-2.
 *
 * <pre>
 * classes    two classes whose static initialisers need each other
 * super      a class whose static initialiser makes an object of a subclass, which another thread initialises
 * monitor    a static initialiser that wants a monitor, the owner of which needs that class
 * pinned     two virtual threads, and two classes whose static initialisers need each other
 * reentrant  two virtual threads on two ReentrantLocks
 * mixed      a virtual and a platform thread on two monitors
 * virtual    two virtual threads on two monitors
 * slow       a static initialiser that takes long, and a thread that needs the class: no deadlock
 * held       a monitor and a lock that are held for long, and threads that want them: no deadlock
 * passed     two virtual threads that pass a lock on to each other: no deadlock
 * </pre>
 */
public final class Deadlocks {
    private Deadlocks() {}

    static volatile int made;
    static final List<Thread> THREADS = new CopyOnWriteArrayList<>();

    public static void main(String[] kinds) throws Exception {
        for (String kind : kinds) {
            start(kind);
        }
        for (Thread thread : THREADS) {
            settle(thread);
        }
        Control.serve((command, out) -> { throw new IllegalArgumentException(command); }, Deadlocks::check);
    }

    private static void check() {
        for (Thread thread : THREADS) {
            Control.check(thread.isAlive(), thread.getName() + " has ended");
        }
    }

    private static void start(String kind) throws Exception {
        switch (kind) {
            case "classes":
                pair(kind, false, false, () -> made += One.VALUE, () -> made += Two.VALUE);
                break;
            case "super":
                pair(kind, false, false, () -> made += Above.VALUE, () -> {
                    SUPER.meet();
                    made += Below.OWN;
                });
                break;
            case "monitor":
                pair(kind, false, false, () -> made += Needs.VALUE, () -> {
                    synchronized (GUARD) {
                        NEEDS.meet();
                        made += Needs.VALUE;
                    }
                });
                break;
            case "pinned":
                pair(kind, true, true, () -> made += Three.VALUE, () -> made += Four.VALUE);
                break;
            case "reentrant":
                locks(kind);
                break;
            case "mixed":
                monitors(kind, true, false);
                break;
            case "virtual":
                monitors(kind, true, true);
                break;
            case "slow":
                pair(kind, false, false, () -> made += Slow.VALUE, () -> {
                    SLOW.meet();
                    made += Slow.VALUE;
                });
                break;
            case "held":
                held(kind);
                break;
            case "passed":
                ReentrantLock fair = new ReentrantLock(true);
                pair(kind, true, true, () -> pass(fair), () -> pass(fair));
                break;
            default:
                throw new IllegalArgumentException(kind);
        }
    }

    private static void pair(String kind, boolean first, boolean second, Runnable one, Runnable two) throws Exception {
        THREADS.add(LocksGraph.start(kind + "-1", first, one));
        THREADS.add(LocksGraph.start(kind + "-2", second, two));
    }

    /** Two threads come to the same place, so that both hold what they hold before either wants more. */
    static final class Meeting {
        private final CountDownLatch both = new CountDownLatch(2);

        /** Asks again and again: a thread that waited here would look as if it had settled. */
        void meet() {
            both.countDown();
            while (both.getCount() > 0) {
                rest(1);
            }
        }
    }

    static void rest(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
    }

    static final Meeting CLASSES = new Meeting();
    static final Meeting PINNED = new Meeting();
    static final Meeting SUPER = new Meeting();
    static final Meeting NEEDS = new Meeting();
    static final Object GUARD = new Object();
    static final Meeting SLOW = new Meeting();

    static class One {
        static int VALUE;

        static {
            CLASSES.meet();
            VALUE = Two.VALUE + 1;
        }
    }

    static class Two {
        static int VALUE;

        static {
            CLASSES.meet();
            VALUE = One.VALUE + 1;
        }
    }

    static class Three {
        static int VALUE;

        static {
            PINNED.meet();
            VALUE = Four.VALUE + 1;
        }
    }

    static class Four {
        static int VALUE;

        static {
            PINNED.meet();
            VALUE = Three.VALUE + 1;
        }
    }

    /** The second thread initialises Below. Before Below's own initialiser it needs Above: it runs no code of Below. */
    static class Above {
        static int VALUE;

        static {
            SUPER.meet();
            settle(named("super-2"));
            VALUE = new Below().hashCode();
        }
    }

    static class Below extends Above {
        static int OWN = 1;
    }

    static class Needs {
        static int VALUE;

        static {
            NEEDS.meet();
            synchronized (GUARD) {
                VALUE = 1;
            }
        }
    }

    static class Slow {
        static int VALUE;

        static {
            SLOW.meet();
            rest(1L << 40);
            VALUE = 1;
        }
    }

    private static void locks(String kind) throws Exception {
        ReentrantLock a = new ReentrantLock();
        ReentrantLock b = new ReentrantLock();
        Meeting meeting = new Meeting();
        pair(kind, true, true, () -> both(a, b, meeting), () -> both(b, a, meeting));
    }

    private static void both(ReentrantLock first, ReentrantLock second, Meeting meeting) {
        first.lock();
        meeting.meet();
        second.lock();
    }

    private static void monitors(String kind, boolean first, boolean second) throws Exception {
        Object a = new Object();
        Object b = new Object();
        Meeting meeting = new Meeting();
        pair(kind, first, second, () -> enter(a, b, meeting), () -> enter(b, a, meeting));
    }

    private static void enter(Object first, Object second, Meeting meeting) {
        synchronized (first) {
            meeting.meet();
            synchronized (second) {
                made++;
            }
        }
    }

    private static void held(String kind) throws Exception {
        Object monitor = new Object();
        ReentrantLock lock = new ReentrantLock();
        CountDownLatch taken = new CountDownLatch(1);
        THREADS.add(LocksGraph.start(kind + "-1", false, () -> {
            synchronized (monitor) {
                lock.lock();
                taken.countDown();
                rest(1L << 40);
            }
        }));
        taken.await();
        THREADS.add(LocksGraph.start(kind + "-2", false, () -> enter(monitor, lock, new Meeting())));
        THREADS.add(LocksGraph.start(kind + "-3", false, lock::lock));
    }

    private static void pass(ReentrantLock lock) {
        for (;;) {
            lock.lock();
            rest(1);
            lock.unlock();
        }
    }

    /** Waits for the thread of a name: it may run before the one that starts it has put it into the list. */
    private static Thread named(String name) {
        for (;;) {
            for (Thread thread : THREADS) {
                if (thread.getName().equals(name)) {
                    return thread;
                }
            }
            rest(1);
        }
    }

    /** Waits until a thread does what it will do for ever. A wait for a class is RUNNABLE or WAITING, as the JDK has it. */
    static void settle(Thread thread) {
        if (thread.getName().startsWith("passed")) {
            return;
        }
        for (int same = 0; same < 20 && thread.isAlive(); rest(5)) {
            StackTraceElement[] stack = thread.getStackTrace();
            boolean meets = stack.length == 0;
            for (StackTraceElement frame : stack) {
                meets |= frame.getMethodName().equals("meet");
            }
            same = meets ? 0 : same + 1;
        }
    }
}
