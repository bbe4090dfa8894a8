package truth;

import java.io.File;
import java.io.FileInputStream;
import java.io.RandomAccessFile;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.channels.Selector;
import java.security.AccessController;
import java.security.PrivilegedAction;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/**
 * One thread for each kind of frame, standing still: a chain of calls of that kind ends in Gate.pass or
 * in a blocking native method. Each kind gives back a number that shows that all its calls were made,
 * once and in order; it is verified when the gates open.
 */
@SuppressWarnings("removal")
final class Parked implements Runnable {
    /** Enough calls for C2, also where it waits for a profile. */
    private static final int WARM = 30_000;
    /** Enough calls for C1 with profiling (200), too few for C2 (5,000). */
    private static final int LUKEWARM = 700;
    static final int DEEP = 900;

    /** The body of a kind: it warms up, shuts the gate and walks into it. */
    interface Body {
        int run(Gate gate) throws Throwable;
    }

    final String name;
    final Gate gate = new Gate();
    final Thread thread;
    /** Methods that must stand on the stack, from the top down, with nothing of ours between them. */
    final String[] chain;
    private final Body body;
    private final int expected;
    private volatile int result = Integer.MIN_VALUE;
    private volatile Throwable wrong;

    private Parked(String name, int expected, Body body, String... chain) {
        this.name = name;
        this.expected = expected;
        this.body = body;
        this.chain = chain;
        thread = new Thread(this, name);
        thread.setDaemon(true);
    }

    @Override
    public void run() {
        try {
            result = body.run(gate);
        } catch (Throwable thrown) {
            wrong = thrown;
        }
    }

    /** Whether the thread stands where it is meant to. */
    boolean standsStill() {
        Control.check(wrong == null, name + ": " + wrong);
        if (!gate.reached) {
            return false;
        }
        StackTraceElement[] stack = thread.getStackTrace();
        return thread.getState() == Thread.State.BLOCKED || stack.length > 0 && stack[0].isNativeMethod();
    }

    void verify() throws InterruptedException {
        gate.open(thread);
        if (!gate.isOpen() || chain[0].startsWith("blocked")) {
            return; // it can only be freed by what it waits for; its stack was the test
        }
        thread.join(20_000);
        Control.check(wrong == null, name + ": " + wrong);
        Control.check(result == expected, name + ": " + result + ", not " + expected);
    }

    static Parked[] all() {
        return new Parked[] {
            new Parked("interpreted", 6, Parked::interpreted, "interpretedC", "interpretedB", "interpretedA"),
            new Parked("c1", 6, Parked::c1, "c1C", "c1B", "c1A"),
            new Parked("c2-inlined", 10, Parked::c2, "inlinedD", "inlinedC", "inlinedB", "inlinedA"),
            new Parked("osr", 499_999 % 7, Parked::osr, "osr"),
            new Parked("mixed", 30, Parked::mixed, "interpretedLeaf", "inlinedUpper", "interpretedUpper", "inlinedRoot"),
            new Parked("synchronized", 3, Parked::synchronizedKind, "synchronizedBlock", "synchronizedMethod"),
            new Parked("lambda", 8, Parked::lambda, "lambda$lambda$", "applyLambda"),
            new Parked("stream", 15, Parked::stream, "streamLeaf"),
            new Parked("reflection", 5, Parked::reflection, "reflectedLeaf"),
            new Parked("reflection-warm", 5, Parked::reflectionWarm, "reflectedLeaf"),
            new Parked("method-handle", 7, Parked::methodHandle, "handleLeaf", "throughHandle"),
            new Parked("do-privileged", 9, Parked::doPrivileged, "run", "doPrivileged"),
            new Parked("class-initialiser", 11, Parked::classInitialiser, "<clinit>"),
            new Parked("class-loader", 12, Parked::classLoader, "loadClass"),
            new Parked("deoptimised", DEEP, Parked::deoptimised, "deoptDescend", "deoptDescend", "deoptDescend"),
            new Parked("deep-recursion", DEEP, Parked::deepRecursion, "descend", "descend", "descend"),
            new Parked("default-method", 4, Parked::defaultMethod, "leaf", "viaDefault"),
            new Parked("constructor", 2, Parked::constructor, "<init>", "<init>"),
            new Parked("exception-handler", 13, Parked::exceptionHandler, "inHandler"),
            new Parked("finally", 14, Parked::inFinally, "leaveThroughFinally"),
            new Parked("object-wait", 0, Parked::blockedWait, "blockedWait"),
            new Parked("sleep", 0, Parked::blockedSleep, "blockedSleep"),
            new Parked("read", 0, Parked::blockedRead, "blockedRead"),
            new Parked("select", 0, Parked::blockedSelect, "blockedSelect"),
            new Parked("monitor-enter", 0, Parked::blockedEnter, "blockedEnter"),
        };
    }

    // Interpreted only: the test excludes interpreted* from compilation.

    private static int interpreted(Gate gate) {
        for (int i = 0; i < WARM; i++) {
            interpretedA(gate, 1);
        }
        gate.shut();
        return interpretedA(gate, 1);
    }

    private static int interpretedA(Gate gate, int n) {
        return 1 + interpretedB(gate, n + 1);
    }

    private static int interpretedB(Gate gate, int n) {
        int more = interpretedC(gate, n + 1);
        return more + 1;
    }

    private static int interpretedC(Gate gate, int n) {
        n++;
        return gate.pass(n);
    }

    // C1 with profiling.

    private static int c1(Gate gate) {
        for (int i = 0; i < LUKEWARM; i++) {
            c1A(gate, 1);
        }
        gate.shut();
        return c1A(gate, 1);
    }

    private static int c1A(Gate gate, int n) {
        return c1B(gate, n) + 3;
    }

    private static int c1B(Gate gate, int n) {
        return c1C(gate, n) + 2;
    }

    private static int c1C(Gate gate, int n) {
        return gate.pass(n);
    }

    // C2: four methods in one physical frame, the calls on different lines.

    private static int c2(Gate gate) {
        for (int i = 0; i < WARM; i++) {
            inlinedA(gate, 1);
        }
        gate.shut();
        return inlinedA(gate, 1);
    }

    private static int inlinedA(Gate gate, int n) {
        int sum = 4;
        sum += inlinedB(gate, n);
        return sum;
    }

    private static int inlinedB(Gate gate, int n) {
        return 3
            + inlinedC(gate, n);
    }

    private static int inlinedC(Gate gate, int n) {
        if (n > 0) {
            return 2 + inlinedD(gate, n);
        }
        return 0;
    }

    private static int inlinedD(Gate gate, int n) {
        return gate.pass(n);
    }

    // OSR: one call, whose loop is compiled while it runs.

    private static int osr(Gate gate) {
        int rest = 0;
        gate.shutAfter(499_999);
        for (int i = 0; i < 500_000; i++) {
            rest = gate.pass(i) % 7;
        }
        return rest;
    }

    // Compiled and interpreted by turns: every adapter between the two.

    private static int mixed(Gate gate) {
        for (int i = 0; i < WARM; i++) {
            inlinedRoot(gate, 3);
        }
        gate.shut();
        return inlinedRoot(gate, 3);
    }

    private static int inlinedRoot(Gate gate, int n) {
        return 2 * interpretedUpper(gate, n, 1L, 2.0, 3.0f, 4, 5L);
    }

    private static int interpretedUpper(Gate gate, int n, long a, double b, float c, int d, long e) {
        return inlinedUpper(gate, n) + (int) (a + b + c - d - e) + 3;
    }

    private static int inlinedUpper(Gate gate, int n) {
        return interpretedLeaf(gate, n, 1, 2, 3, 4, 5, 6.0, "many arguments, so that some are on the stack");
    }

    private static int interpretedLeaf(Gate gate, int n, int a, int b, int c, long d, long e, double f, String g) {
        return gate.pass(n) + a + b + c + (int) d + (g.isEmpty() ? 0 : 2);
    }

    private static int synchronizedKind(Gate gate) {
        Parked lock = new Parked("lock", 0, null);
        for (int i = 0; i < WARM; i++) {
            lock.synchronizedMethod(gate);
        }
        gate.shut();
        return lock.synchronizedMethod(gate);
    }

    private synchronized int synchronizedMethod(Gate gate) {
        return 1 + synchronizedBlock(gate);
    }

    private int synchronizedBlock(Gate gate) {
        synchronized (chain) {
            return gate.pass(2);
        }
    }

    private static int lambda(Gate gate) {
        int captured = 3;
        IntUnaryOperator operator = n -> gate.pass(n) + captured;
        for (int i = 0; i < WARM; i++) {
            applyLambda(operator, 5);
        }
        gate.shut();
        return applyLambda(operator, 5);
    }

    private static int applyLambda(IntUnaryOperator operator, int n) {
        return operator.applyAsInt(n);
    }

    private static int stream(Gate gate) {
        for (int i = 0; i < 3_000; i++) {
            streamSum(gate);
        }
        gate.shut();
        return streamSum(gate);
    }

    private static int streamSum(Gate gate) {
        return IntStream.rangeClosed(1, 5).map(n -> n).filter(n -> n > 0).map(n -> streamLeaf(gate, n)).sum();
    }

    private static int streamLeaf(Gate gate, int n) {
        return gate.pass(n);
    }

    // The first calls by reflection go through native code (up to JDK 17) ...

    private static int reflection(Gate gate) throws Throwable {
        gate.shut();
        return (Integer) Parked.class.getDeclaredMethod("reflectedLeaf", Gate.class).invoke(null, gate);
    }

    // ... later ones through generated code.

    private static int reflectionWarm(Gate gate) throws Throwable {
        java.lang.reflect.Method leaf = Parked.class.getDeclaredMethod("reflectedLeaf", Gate.class);
        for (int i = 0; i < WARM; i++) {
            leaf.invoke(null, gate);
        }
        gate.shut();
        return (Integer) leaf.invoke(null, gate);
    }

    private static int reflectedLeaf(Gate gate) {
        return gate.pass(5);
    }

    private static int methodHandle(Gate gate) throws Throwable {
        MethodType type = MethodType.methodType(int.class, Gate.class, int.class);
        MethodHandle leaf = MethodHandles.lookup().findStatic(Parked.class, "handleLeaf", type);
        MethodHandle bound = MethodHandles.insertArguments(leaf, 1, 4);
        for (int i = 0; i < WARM; i++) {
            throughHandle(bound, gate);
        }
        gate.shut();
        return throughHandle(bound, gate);
    }

    private static int throughHandle(MethodHandle handle, Gate gate) throws Throwable {
        return 3 + (int) handle.invokeExact(gate);
    }

    private static int handleLeaf(Gate gate, int n) {
        return gate.pass(n);
    }

    // Java above native code above Java, three ways.

    private static int doPrivileged(Gate gate) {
        gate.shut();
        PrivilegedAction<Integer> action = new PrivilegedAction<Integer>() {
            @Override
            public Integer run() {
                return gate.pass(9);
            }
        };
        return AccessController.doPrivileged(action);
    }

    private static Gate gateOfInitialiser;

    private static int classInitialiser(Gate gate) {
        gate.shut();
        gateOfInitialiser = gate;
        return Initialised.value;
    }

    private static final class Initialised {
        static int value;

        static {
            value = gateOfInitialiser.pass(11);
        }
    }

    private static int classLoader(Gate gate) throws Throwable {
        gate.shut();
        ClassLoader loader = new ClassLoader(null) {
            @Override
            protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
                gate.pass(0);
                throw new ClassNotFoundException(name);
            }
        };
        try {
            Class.forName("no.such.Thing", true, loader);
        } catch (ClassNotFoundException asMeant) {
            return 12;
        }
        return 0;
    }

    // Deoptimised: the code of deoptDescend believes that no class overrides Leaf.weight; Kinds loads
    // one that does while all the calls stand on the stack.

    static class Leaf {
        int weight(int n) {
            return n > 0 ? 1 : 0;
        }
    }

    static final class HeavyLeaf extends Leaf {
        @Override
        int weight(int n) {
            return 1_000;
        }
    }

    private static int deoptimised(Gate gate) {
        Leaf leaf = new Leaf();
        for (int i = 0; i < 300; i++) {
            deoptDescend(gate, leaf, DEEP / 3);
        }
        gate.shut();
        return deoptDescend(gate, leaf, DEEP);
    }

    private static int deoptDescend(Gate gate, Leaf leaf, int depth) {
        if (depth == 0) {
            return gate.pass(0);
        }
        int below = deoptDescend(gate, leaf, depth - 1);
        return below + leaf.weight(depth);
    }

    /** Called once all threads stand still; afterwards the frames of "deoptimised" are. */
    static void invalidate() throws Exception {
        Class.forName("truth.Parked$HeavyLeaf").getDeclaredConstructor().newInstance();
    }

    private static int deepRecursion(Gate gate) {
        for (int i = 0; i < 300; i++) {
            descend(gate, DEEP / 3, 1L, "x");
        }
        gate.shut();
        return descend(gate, DEEP, 1L, "x");
    }

    private static int descend(Gate gate, int depth, long spare, String text) {
        if (depth == 0) {
            return gate.pass(0);
        }
        return 1 + descend(gate, depth - 1, spare + depth, text);
    }

    interface WithDefault {
        int leaf(Gate gate);

        default int viaDefault(Gate gate) {
            return 1 + leaf(gate);
        }
    }

    private static int defaultMethod(Gate gate) {
        WithDefault inner = new WithDefault() {
            @Override
            public int leaf(Gate g) {
                return g.pass(3);
            }
        };
        for (int i = 0; i < WARM; i++) {
            inner.viaDefault(gate);
        }
        gate.shut();
        return inner.viaDefault(gate);
    }

    private static class Made {
        final int value;

        Made(Gate gate) {
            value = gate.pass(1);
        }
    }

    private static final class MadeMore extends Made {
        MadeMore(Gate gate) {
            super(gate);
        }
    }

    private static int constructor(Gate gate) {
        gate.shut();
        return new MadeMore(gate).value + 1;
    }

    private static int exceptionHandler(Gate gate) {
        for (int i = 0; i < WARM; i++) {
            inHandler(gate, null);
        }
        gate.shut();
        return inHandler(gate, null);
    }

    private static int inHandler(Gate gate, String text) {
        try {
            return text.length();
        } catch (NullPointerException asMeant) {
            return gate.pass(13);
        }
    }

    private static int inFinally(Gate gate) {
        gate.shut();
        try {
            return leaveThroughFinally(gate);
        } catch (IllegalArgumentException asMeant) {
            return 14;
        }
    }

    private static int leaveThroughFinally(Gate gate) {
        try {
            throw new IllegalArgumentException("on its way out");
        } finally {
            gate.pass(0);
        }
    }

    // Blocked in native methods and in the VM. They are freed by nothing but the end of the program.

    private static int blockedWait(Gate gate) throws InterruptedException {
        synchronized (gate) {
            gate.blockingNow();
            while (!gate.isOpen()) {
                gate.wait();
            }
        }
        return 0;
    }

    private static int blockedSleep(Gate gate) throws InterruptedException {
        gate.blockingNow();
        Thread.sleep(3_600_000);
        return 0;
    }

    /** Reads from a pipe that stays empty. */
    private static int blockedRead(Gate gate) throws Exception {
        File fifo = new File(System.getProperty("java.io.tmpdir"), "kinds-fifo-" + System.nanoTime());
        int status = new ProcessBuilder("mkfifo", fifo.getPath()).inheritIO().start().waitFor();
        Control.check(status == 0, "mkfifo failed");
        try (RandomAccessFile writer = new RandomAccessFile(fifo, "rw");
                FileInputStream reader = new FileInputStream(fifo)) {
            Control.check(fifo.delete(), "cannot delete " + fifo);
            gate.blockingNow();
            return reader.read(new byte[16]);
        }
    }

    private static int blockedSelect(Gate gate) throws Exception {
        try (Selector selector = Selector.open()) {
            gate.blockingNow();
            return selector.select();
        }
    }

    private static final Object HELD = new Object();

    /** Waits for a monitor whose owner, a thread of no other use, never gives it back. */
    private static int blockedEnter(Gate gate) throws InterruptedException {
        Gate owner = new Gate();
        owner.shut();
        Thread holder = new Thread(() -> {
            synchronized (HELD) {
                owner.pass(0);
            }
        }, "monitor-holder");
        holder.setDaemon(true);
        holder.start();
        while (!owner.reached) {
            Thread.sleep(1);
        }
        gate.blockingNow();
        synchronized (HELD) {
            return 0;
        }
    }
}
