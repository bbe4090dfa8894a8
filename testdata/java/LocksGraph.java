package truth;

import java.io.PrintStream;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * Proves: who waits for whose lock is told. Arguments: a seed, how many threads, the kinds of locks, how many of the
 * threads that wait for nobody are virtual; with a fifth argument, of all threads. Thread N, of the name lock-N, takes lock N and some monitors of its own, and
 * then wants the lock of another thread or of none, as chance has it: so they make cycles and chains. Kinds are m, a
 * monitor; r, a ReentrantLock; w and s, a ReentrantReadWriteLock that is held for writing, for reading.
 *
 * "truth" prints for each thread the kind of its lock, its class, and for whom it waits, -1 for nobody:
 *
 *   NODE 3 m truth.LocksGraph$Plain 5
 *
 * lock-reenter was notified, and waits to have the monitor again that lock-reowner has. "moves" lets the collector
 * move everything.
 */
public final class LocksGraph {
    private LocksGraph() {}

    static class Plain {}

    static final class Other extends Plain {}

    static final class Own {}

    private static int[] target;
    private static char[] kind;
    private static boolean[] virtual;
    private static Object[] monitor;
    private static ReentrantLock[] exclusive;
    private static ReentrantReadWriteLock[] readWrite;
    private static CountDownLatch held;
    private static final Object NOTHING = new Object();
    private static final Object REENTERED = new Plain();
    private static volatile boolean waits;
    static volatile long spun;

    public static void main(String[] args) throws Exception {
        Random random = new Random(Long.parseLong(args[0]));
        int n = Integer.parseInt(args[1]);
        int virtuals = Integer.parseInt(args[3]);
        make(random, n, args[2], virtuals, args.length > 4);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < n; i++) {
            int own = i;
            threads.add(start("lock-" + i, virtual[i], () -> nested(own, own % 4)));
        }
        Thread reenter = start("lock-reenter", false, LocksGraph::reenter);
        Thread reowner = start("lock-reowner", false, LocksGraph::reown);
        held.await();
        for (int i = 0; i < n; i++) {
            settle(threads.get(i), target[i] >= 0);
        }
        settle(reowner, false);
        while (reenter.getState() != Thread.State.BLOCKED) {
            Thread.sleep(1);
        }
        Control.serve(LocksGraph::command, () -> Control.check(threads.size() == target.length, "a thread is missing"));
    }

    private static void make(Random random, int n, String kinds, int virtuals, boolean waiting) {
        target = new int[n];
        kind = new char[n];
        virtual = new boolean[n];
        monitor = new Object[n];
        exclusive = new ReentrantLock[n];
        readWrite = new ReentrantReadWriteLock[n];
        held = new CountDownLatch(n);
        for (int i = 0; i < n; i++) {
            kind[i] = kinds.charAt(random.nextInt(kinds.length()));
            target[i] = random.nextInt(4) == 0 ? -1 : random.nextInt(n);
            if (target[i] == i) {
                target[i] = -1;
            }
            if ((target[i] < 0 || waiting) && virtuals > 0) {
                virtual[i] = true;
                virtuals--;
            }
            monitor[i] = i % 3 == 0 ? new Other() : i % 3 == 1 ? new Plain() : new Plain[1];
            exclusive[i] = new ReentrantLock(i % 2 == 0);
            readWrite[i] = new ReentrantReadWriteLock();
        }
    }

    /** Waits until a thread does what it will do for ever. */
    private static void settle(Thread thread, boolean waits) throws Exception {
        for (int same = 0; same < 3; Thread.sleep(1)) {
            Thread.State state = thread.getState();
            boolean rests = state == Thread.State.BLOCKED || state == Thread.State.WAITING;
            same = rests || !waits && state == Thread.State.TIMED_WAITING ? same + 1 : 0;
        }
    }

    private static void command(String command, PrintStream out) {
        switch (command) {
            case "moves":
                for (int i = 0; i < 50; i++) {
                    garbage = new byte[1 << 16];
                }
                System.gc();
                return;
            case "truth":
                for (int i = 0; i < target.length; i++) {
                    out.println("NODE " + i + " " + kind[i] + " " + classOf(i) + " " + target[i] + " "
                            + (virtual[i] ? "virtual" : "platform"));
                }
                return;
            default:
                throw new IllegalArgumentException(command);
        }
    }

    static volatile byte[] garbage;

    private static String classOf(int i) {
        switch (kind[i]) {
            case 'm':
                return monitor[i].getClass().getTypeName();
            case 'r':
                return ReentrantLock.class.getName() + (i % 2 == 0 ? "$FairSync" : "$NonfairSync");
            default:
                return ReentrantReadWriteLock.class.getName() + "$NonfairSync";
        }
    }

    static Thread start(String name, boolean isVirtual, Runnable work) throws Exception {
        if (isVirtual) { // of JDK 21
            Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
            Class<?> type = Class.forName("java.lang.Thread$Builder$OfVirtual");
            Method named = type.getMethod("name", String.class);
            return (Thread) type.getMethod("start", Runnable.class).invoke(named.invoke(builder, name), work);
        }
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    /** Takes monitors of its own first, each twice. */
    private static void nested(int i, int depth) {
        if (depth == 0) {
            hold(i);
            return;
        }
        Own own = new Own();
        synchronized (own) {
            synchronized (own) {
                nested(i, depth - 1);
            }
        }
    }

    private static void hold(int i) {
        switch (kind[i]) {
            case 'm':
                holdMonitor(i, monitor[i]);
                return;
            case 'r':
                exclusive[i].lock();
                break;
            case 'w':
                readWrite[i].writeLock().lock();
                break;
            default:
                readWrite[i].readLock().lock();
        }
        goOn(i);
    }

    private static void holdMonitor(int i, Object lock) {
        synchronized (lock) {
            goOn(i);
        }
    }

    private static void goOn(int i) {
        held.countDown();
        awaitAll();
        int other = target[i];
        if (other < 0) {
            rest(i);
            return;
        }
        switch (kind[other]) {
            case 'm':
                enter(monitor[other]);
                return;
            case 'r':
                exclusive[other].lock();
                return;
            default:
                readWrite[other].writeLock().lock();
        }
    }

    /** Asks again and again: whoever waited here would look as if it had settled, until it has a CPU to go on. */
    private static void awaitAll() {
        while (held.getCount() > 0) {
            try {
                Thread.sleep(1);
            } catch (InterruptedException never) {
                throw new IllegalStateException(never);
            }
        }
    }

    private static void enter(Object lock) {
        synchronized (lock) {
            spun++;
        }
    }

    private static void rest(int i) {
        while (true) {
            try {
                if (i % 3 == 0) {
                    Thread.sleep(1 << 30);
                } else if (i % 3 == 1) {
                    LockSupport.park(NOTHING);
                } else {
                    Own own = new Own();
                    synchronized (own) {
                        own.wait();
                    }
                }
            } catch (InterruptedException never) {
                throw new IllegalStateException(never);
            }
        }
    }

    private static void reenter() {
        synchronized (REENTERED) {
            waits = true;
            try {
                REENTERED.wait();
            } catch (InterruptedException never) {
                throw new IllegalStateException(never);
            }
        }
    }

    private static void reown() {
        while (!waits) {
            Thread.yield();
        }
        synchronized (REENTERED) {
            REENTERED.notifyAll();
            rest(1);
        }
    }
}
