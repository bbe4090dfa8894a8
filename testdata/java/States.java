package truth;

import java.io.PrintStream;
import java.io.RandomAccessFile;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.channels.Selector;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Proves: a wall-clock recording says of each thread what it does, and what it waits for. One thread for each
 * state; its argument is a named pipe. "stacks" prints, for each thread, what it does, for what it waits, and its
 * frames as the JVM itself tells them (Thread.getStackTrace), the top first:
 *
 *   THREAD is-parked parked truth.States$Blocker
 *   FRAME jdk.internal.misc.Unsafe.park -2
 *
 * "rss" does nothing, "moves" lets the collector move everything.
 */
public final class States {
    private States() {}

    static final class Blocker {}

    static final class Held {}

    static final class Signal {}

    /** How a thread comes to do what it does for ever. */
    interface Way {
        void go() throws Exception;
    }

    private static final Held HELD = new Held();
    private static final int[][] HELD_ARRAY = new int[1][];
    private static final ReentrantLock LOCK = new ReentrantLock();
    private static final List<Thread> THREADS = new ArrayList<>();
    private static final List<String> STATES = new ArrayList<>();
    private static final CountDownLatch STARTED = new CountDownLatch(11);
    static volatile long spun;

    public static void main(String[] args) throws Exception {
        ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Socket client = new Socket(server.getInetAddress(), server.getLocalPort());
        Socket accepted = server.accept();
        Selector selector = Selector.open();
        RandomAccessFile fifo = new RandomAccessFile(args[0], "rw");
        LOCK.lock();
        synchronized (HELD) {
            synchronized (HELD_ARRAY) {
                start("is-parked", "parked truth.States$Blocker", () -> LockSupport.park(new Blocker()));
                start("is-locked", "parked java.util.concurrent.locks.ReentrantLock$NonfairSync", LOCK::lock);
                start("is-blocked", "blocked truth.States$Held", States::enter);
                start("is-blocked-by-array", "blocked int[][]", States::enterArray);
                start("is-waiting", "waiting truth.States$Signal", States::await);
                start("is-sleeping", "sleeping -", () -> Thread.sleep(Integer.MAX_VALUE));
                start("is-accepting", "socket -", server::accept);
                start("is-receiving", "socket -", () -> client.getInputStream().read());
                start("is-selecting", "socket -", selector::select);
                start("is-reading", "file -", fifo::read);
                start("is-spinning", "running -", States::spin);
                STARTED.await();
                Control.serve(States::command, () -> Control.check(spun > 0 && !accepted.isClosed(), "nothing was done"));
            }
        }
    }

    private static void command(String command, PrintStream out) {
        switch (command) {
            case "moves":
                System.gc();
                return;
            case "stacks":
                for (int i = 0; i < THREADS.size(); i++) {
                    out.println("THREAD " + THREADS.get(i).getName() + " " + STATES.get(i));
                    for (StackTraceElement e : THREADS.get(i).getStackTrace()) {
                        out.println("FRAME " + e.getClassName() + "." + e.getMethodName() + " " + e.getLineNumber());
                    }
                }
                return;
            default:
                throw new IllegalArgumentException(command);
        }
    }

    private static void start(String name, String state, Way way) {
        Thread thread = new Thread(() -> {
            STARTED.countDown();
            try {
                while (true) {
                    way.go();
                }
            } catch (Exception thrown) {
                throw new IllegalStateException(thrown);
            }
        }, name);
        thread.setDaemon(true);
        THREADS.add(thread);
        STATES.add(state);
        thread.start();
    }

    private static void enter() {
        synchronized (HELD) {
            spun++;
        }
    }

    private static void enterArray() {
        synchronized (HELD_ARRAY) {
            spun++;
        }
    }

    private static void await() throws Exception {
        Signal signal = new Signal();
        synchronized (signal) {
            signal.wait();
        }
    }

    private static void spin() {
        for (int i = 0; i < 1_000_000; i++) {
            spun += i & 1;
        }
    }
}
