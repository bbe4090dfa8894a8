package truth;

import static truth.ShadowStack.__LINE__;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.MutableCallSite;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.Random;
import java.util.function.IntSupplier;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/**
 * Proves: every frame of a stack and the line of every caller, at whatever instruction a thread stops.
 *
 * Threads run seeded random call trees of every kind of call; each method keeps a shadow of the stack
 * by ShadowStack, which describes the file and how a test compares it. A method has the form
 *
 *   s.push(ID); try { ... s.at(__LINE__); call(...); ... } finally { s.pop(); }
 *
 * so that a walk agrees with the shadow, but for one method more at the top while it enters or leaves,
 * and one less while an exception is on its way out. Each tree is run twice and must give the same
 * number both times, and now and then the shadow is held against the JVM's own stack trace.
 *
 * Arguments: FILE [threads (1)] [seed (1)] [storm | shallow | virtual]. With "storm" a further thread changes,
 * every few milliseconds, the target of a call that compiled code takes for constant: deoptimisation, for
 * ever with -XX:PerMethodRecompilationCutoff=100000000. With "shallow" no recursion goes deep: for small stacks.
 * With "virtual" (JDK 21) the trees are run by virtual threads, each of which gives up its carrier every so
 * many calls, at whatever depth: most of its frames then stay in the heap until they are returned to. It
 * takes a single carrier to be compared: -Djdk.virtualThreadScheduler.parallelism=1 and maxPoolSize=1.
 * The command "trees" prints how many trees were run.
 */
public final class Shadow implements Runnable {
    private static final long STORM_MS = 4;
    /** How deep the deepest recursion goes. */
    private static int deepest = 1_000;

    private final ShadowStack s;
    private Random random;
    /** Calls that the present tree may still make. */
    private int budget;
    private int leaves;
    private volatile long trees;
    private volatile boolean stop;
    private volatile Throwable wrong;
    private int seed;

    private Shadow(ShadowStack s, int seed) {
        this.s = s;
        this.seed = seed;
    }

    public static void main(String[] args) throws Exception {
        Control.check(__LINE__ != 0, "compiled without line numbers: jvmtest puts them in");
        String path = args[0];
        int count = args.length > 1 ? Integer.parseInt(args[1]) : 1;
        int seed = args.length > 2 ? Integer.parseInt(args[2]) : 1;
        boolean virtual = args.length > 3 && args[3].equals("virtual");
        ShadowStack[] stacks = ShadowStack.create(path, count);
        Shadow[] all = new Shadow[count];
        Thread[] threads = new Thread[count];
        if (args.length > 3 && args[3].equals("shallow")) {
            deepest = 60;
        }
        for (int i = 0; i < count; i++) {
            all[i] = new Shadow(stacks[i], seed + 1_000_003 * i);
            threads[i] = virtual ? virtualThread(all[i]) : new Thread(all[i], "shadow-" + i);
            all[i].yields = virtual;
            if (!virtual) {
                threads[i].setDaemon(true);
            }
        }
        ShadowStack.writeIds(path);
        for (Thread thread : threads) {
            thread.start();
        }
        if (args.length > 3 && !args[3].equals("shallow") && !virtual) {
            Control.check(args[3].equals("storm"), "no such argument: " + args[3]);
            Thread storm = new Thread(Shadow::storm, "storm");
            storm.setDaemon(true);
            storm.start();
        }
        for (Shadow one : all) {
            while (one.trees == 0) {
                Control.check(one.wrong == null, String.valueOf(one.wrong));
                Thread.sleep(2);
            }
        }
        Control.serve((command, out) -> {
            Control.check(command.equals("trees"), "no such command: " + command);
            long sum = 0;
            for (Shadow one : all) {
                sum += one.trees;
            }
            out.println(sum);
        }, () -> {
            for (int i = 0; i < count; i++) {
                all[i].stop = true;
                threads[i].join(60_000);
                Control.check(!threads[i].isAlive(), threads[i] + " hangs");
                if (all[i].wrong != null) {
                    throw new IllegalStateException(all[i].wrong);
                }
            }
        });
    }

    private static Thread virtualThread(Runnable task) throws ReflectiveOperationException {
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        return (Thread) Class.forName("java.lang.Thread$Builder").getMethod("unstarted", Runnable.class).invoke(builder, task);
    }

    private boolean yields;
    private int sinceYield;

    /** Gives up the carrier now and then. */
    private void mayYield() {
        if (yields && ++sinceYield % 61 == 0) {
            Thread.yield();
        }
    }

    private static final int RUN = ShadowStack.id("truth.Shadow.run");

    @Override
    public void run() {
        try {
            s.begin();
            s.push(RUN);
            while (!stop) {
                seed++;
                s.at(__LINE__); int first = tree(seed);
                s.at(__LINE__); int second = tree(seed);
                Control.check(first == second, "tree " + seed + ": " + first + ", then " + second);
                trees++;
            }
            s.pop();
        } catch (Throwable thrown) {
            wrong = thrown;
        } finally {
            s.end();
        }
    }

    private static final int TREE = ShadowStack.id("truth.Shadow.tree");

    private int tree(int treeSeed) {
        s.push(TREE);
        try {
            s.seed(treeSeed);
            random = new Random(treeSeed);
            budget = 400;
            int sum = 0;
            while (budget > 0) {
                s.at(__LINE__); sum += 31 * sum + step(12);
            }
            Control.check(s.depth() == 2, "the shadow is off by " + (s.depth() - 2));
            return sum;
        } finally {
            s.pop();
        }
    }

    private static final int STEP = ShadowStack.id("truth.Shadow.step");

    /** One call of a random kind, which may call step again, at most so many levels deeper. */
    private int step(int levels) {
        s.push(STEP);
        try {
            if (levels == 0 || --budget <= 0 || s.depth() > ShadowStack.MAX_DEPTH - 1_100) {
                s.at(__LINE__); return leaf(levels + 3);
            }
            switch (random.nextInt(19)) {
                case 0: s.at(__LINE__); return recurse(random.nextInt(40), levels);
                case 1: s.at(__LINE__); return random.nextInt(20) == 0 ? recurse(deepest, 0) : leaf(9);
                case 2: s.at(__LINE__); return throughLambda(levels);
                case 3: s.at(__LINE__); return throughStream(levels);
                case 4: s.at(__LINE__); return throughReflection(levels);
                case 5: s.at(__LINE__); return throughHandle(levels);
                case 6: s.at(__LINE__); return throughInterface(levels);
                case 7: s.at(__LINE__); return throughVirtual(levels);
                case 8: s.at(__LINE__); return catching(random.nextInt(12));
                case 9: s.at(__LINE__); return locked(levels);
                case 10: s.at(__LINE__); return inners[random.nextInt(2)].viaDefault(levels);
                case 11: s.at(__LINE__); return smallA(levels);
                case 12: s.at(__LINE__); return manyArguments(1, 2L, 3.0f, 4.0, 5, 6L, 7, "8", levels);
                case 13: s.at(__LINE__); return interpretedA(levels);
                case 14: s.at(__LINE__); return allocating(random.nextInt(50));
                case 15: s.at(__LINE__); return sorting(levels);
                case 16: s.at(__LINE__); return looping(levels);
                case 17: s.at(__LINE__); return throughSite(levels);
                default: s.at(__LINE__); return new Maker(levels).made;
            }
        } finally {
            s.pop();
        }
    }

    private static final int LEAF = ShadowStack.id("truth.Shadow.leaf");

    private int leaf(int n) {
        s.push(LEAF);
        try {
            mayYield();
            if ((++leaves & 4_095) == 0) {
                s.compareWithJvm();
            }
            int sum = n;
            for (int i = 0; i < n * 3; i++) {
                sum = sum * 31 + (i ^ (sum >>> 7));
            }
            return sum;
        } finally {
            s.pop();
        }
    }

    private static final int RECURSE = ShadowStack.id("truth.Shadow.recurse");

    private int recurse(int depth, int levels) {
        s.push(RECURSE);
        try {
            if (depth > 0) {
                s.at(__LINE__); return recurse(depth - 1, levels) + 1;
            }
            if (levels > 0) {
                s.at(__LINE__); return step(levels - 1);
            }
            return 7;
        } finally {
            s.pop();
        }
    }

    private static final int THROUGH_LAMBDA = ShadowStack.id("truth.Shadow.throughLambda");
    private static final int LAMBDA_BODY = ShadowStack.id("truth.Shadow.lambda$throughLambda$*");

    private int throughLambda(int levels) {
        s.push(THROUGH_LAMBDA);
        try {
            IntUnaryOperator operator = n -> {
                s.push(LAMBDA_BODY);
                try {
                    s.at(__LINE__); return step(n - 1) ^ levels;
                } finally {
                    s.pop();
                }
            };
            s.at(__LINE__); return operator.applyAsInt(levels);
        } finally {
            s.pop();
        }
    }

    private static final int THROUGH_STREAM = ShadowStack.id("truth.Shadow.throughStream");
    private static final int STREAM_BODY = ShadowStack.id("truth.Shadow.streamBody");

    private int throughStream(int levels) {
        s.push(THROUGH_STREAM);
        try {
            IntStream stream = IntStream.range(0, 3).filter(n -> n < 2).map(n -> n + levels - 1);
            s.at(__LINE__); return stream.map(this::streamBody).sum();
        } finally {
            s.pop();
        }
    }

    private int streamBody(int n) {
        s.push(STREAM_BODY);
        try {
            s.at(__LINE__); return n > 0 ? step(Math.min(n, 11) - 1) : 1;
        } finally {
            s.pop();
        }
    }

    private static final int THROUGH_REFLECTION = ShadowStack.id("truth.Shadow.throughReflection");
    private static final int REFLECTED = ShadowStack.id("truth.Shadow.reflected");

    /** Mostly a Method that is used again and again; now and then a new one, whose calls go the slow way. */
    private int throughReflection(int levels) {
        s.push(THROUGH_REFLECTION);
        try {
            s.at(__LINE__); Method method = random.nextInt(8) == 0 ? reflectedMethod() : REFLECTED_METHOD;
            s.at(__LINE__); return (Integer) method.invoke(this, levels);
        } catch (IllegalAccessException | InvocationTargetException impossible) {
            throw new AssertionError(impossible);
        } finally {
            s.pop();
        }
    }

    private int reflected(int levels) {
        s.push(REFLECTED);
        try {
            s.at(__LINE__); return step(levels - 1) + 5;
        } finally {
            s.pop();
        }
    }

    private static final Method REFLECTED_METHOD = reflectedMethod();

    private static Method reflectedMethod() {
        try {
            return Shadow.class.getDeclaredMethod("reflected", int.class);
        } catch (NoSuchMethodException impossible) {
            throw new AssertionError(impossible);
        }
    }

    private static final int THROUGH_HANDLE = ShadowStack.id("truth.Shadow.throughHandle");
    private static final int HANDLED = ShadowStack.id("truth.Shadow.handled");
    private static final MethodHandle HANDLE = handle("handled", String.class, int.class);
    private final MethodHandle notConstant = MethodHandles.insertArguments(HANDLE.bindTo(this), 0, "bound");

    private int throughHandle(int levels) {
        s.push(THROUGH_HANDLE);
        try {
            if (random.nextBoolean()) {
                s.at(__LINE__); return (int) HANDLE.invokeExact(this, "direct", levels);
            }
            s.at(__LINE__); return (int) notConstant.invoke((short) levels);
        } catch (RuntimeException | Error passing) {
            throw passing;
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        } finally {
            s.pop();
        }
    }

    private int handled(String how, int levels) {
        s.push(HANDLED);
        try {
            s.at(__LINE__); return step(levels - 1) + how.length();
        } finally {
            s.pop();
        }
    }

    private static MethodHandle handle(String name, Class<?>... arguments) {
        try {
            MethodType type = MethodType.methodType(int.class, arguments);
            return MethodHandles.lookup().findVirtual(Shadow.class, name, type);
        } catch (ReflectiveOperationException impossible) {
            throw new AssertionError(impossible);
        }
    }

    // Calls through an interface and through a class, each with four receivers.

    interface Node {
        int visit(Shadow on, int levels);
    }

    abstract static class AbstractNode implements Node {
        abstract int descend(Shadow on, int levels);
    }

    private static final int FIRST_VISIT = ShadowStack.id("truth.Shadow$First.visit");
    private static final int FIRST_DESCEND = ShadowStack.id("truth.Shadow$First.descend");

    static class First extends AbstractNode {
        @Override
        public int visit(Shadow on, int levels) {
            on.s.push(FIRST_VISIT);
            try {
                on.s.at(__LINE__); return on.step(levels - 1) + 1;
            } finally {
                on.s.pop();
            }
        }

        @Override
        int descend(Shadow on, int levels) {
            on.s.push(FIRST_DESCEND);
            try {
                on.s.at(__LINE__); return on.step(levels - 1) + 2;
            } finally {
                on.s.pop();
            }
        }
    }

    private static final int SECOND_VISIT = ShadowStack.id("truth.Shadow$Second.visit");
    private static final int SECOND_DESCEND = ShadowStack.id("truth.Shadow$Second.descend");

    static final class Second extends AbstractNode {
        @Override
        public int visit(Shadow on, int levels) {
            on.s.push(SECOND_VISIT);
            try {
                on.s.at(__LINE__); return on.leaf(levels) + 3;
            } finally {
                on.s.pop();
            }
        }

        @Override
        int descend(Shadow on, int levels) {
            on.s.push(SECOND_DESCEND);
            try {
                on.s.at(__LINE__); return visit(on, levels) + 4;
            } finally {
                on.s.pop();
            }
        }
    }

    private static final int THIRD_VISIT = ShadowStack.id("truth.Shadow$Third.visit");
    private static final int THIRD_DESCEND = ShadowStack.id("truth.Shadow$Third.descend");

    static final class Third extends AbstractNode {
        @Override
        public int visit(Shadow on, int levels) {
            on.s.push(THIRD_VISIT);
            try {
                on.s.at(__LINE__); return descend(on, levels) + 5;
            } finally {
                on.s.pop();
            }
        }

        @Override
        int descend(Shadow on, int levels) {
            on.s.push(THIRD_DESCEND);
            try {
                on.s.at(__LINE__); return on.smallA(levels) + 6;
            } finally {
                on.s.pop();
            }
        }
    }

    /** Inherits visit, so that one method is reached by two vtables. */
    static final class Fourth extends First {
    }

    private static final AbstractNode[] NODES = {new First(), new Second(), new Third(), new Fourth()};

    private static final int THROUGH_INTERFACE = ShadowStack.id("truth.Shadow.throughInterface");
    private static final int THROUGH_VIRTUAL = ShadowStack.id("truth.Shadow.throughVirtual");

    private int throughInterface(int levels) {
        s.push(THROUGH_INTERFACE);
        try {
            Node node = NODES[random.nextInt(NODES.length)];
            s.at(__LINE__); return node.visit(this, levels);
        } finally {
            s.pop();
        }
    }

    private int throughVirtual(int levels) {
        s.push(THROUGH_VIRTUAL);
        try {
            AbstractNode node = NODES[random.nextInt(NODES.length)];
            s.at(__LINE__); return node.descend(this, levels);
        } finally {
            s.pop();
        }
    }

    // Exceptions: thrown explicitly and by the VM, through frames that only pop, to a frame that catches.

    private static final int CATCHING = ShadowStack.id("truth.Shadow.catching");
    private static final int THROWING = ShadowStack.id("truth.Shadow.throwing");
    private static final int FAILING = ShadowStack.id("truth.Shadow.failing");

    private int catching(int depth) {
        s.push(CATCHING);
        try {
            s.at(__LINE__); return throwing(depth, random.nextInt(5));
        } catch (IllegalStateException | NullPointerException | ArithmeticException | ClassCastException | IndexOutOfBoundsException asMeant) {
            s.at(__LINE__); return leaf(4) + depth;
        } finally {
            s.pop();
        }
    }

    private int throwing(int depth, int how) {
        s.push(THROWING);
        try {
            if (depth > 0) {
                s.at(__LINE__); return throwing(depth - 1, how) + 1;
            }
            s.at(__LINE__); return failing(how, null, new int[how], 0, "no number");
        } finally {
            s.pop();
        }
    }

    private int failing(int how, String nothing, int[] few, int zero, Object text) {
        s.push(FAILING);
        try {
            switch (how) {
                case 0: s.at(__LINE__); throw new IllegalStateException("as meant");
                case 1: s.at(__LINE__); return nothing.length();
                case 2: s.at(__LINE__); return how / zero;
                case 3: s.at(__LINE__); return (Integer) text;
                default: s.at(__LINE__); return few[how + 1];
            }
        } finally {
            s.pop();
        }
    }

    private static final int LOCKED = ShadowStack.id("truth.Shadow.locked");

    private synchronized int locked(int levels) {
        s.push(LOCKED);
        try {
            synchronized (notConstant) {
                s.at(__LINE__); return step(levels - 1) ^ 8;
            }
        } finally {
            s.pop();
        }
    }

    // A default method, called on inner classes and calling back into them.

    interface WithDefault {
        ShadowStack shadow();

        int inner(int levels);

        default int viaDefault(int levels) {
            shadow().push(VIA_DEFAULT);
            try {
                shadow().at(__LINE__); return inner(levels) + 9;
            } finally {
                shadow().pop();
            }
        }
    }

    private static final int VIA_DEFAULT = ShadowStack.id("truth.Shadow$WithDefault.viaDefault");
    private static final int INNER = ShadowStack.id("truth.Shadow$Inner.inner");
    private static final int ANONYMOUS = ShadowStack.id("truth.Shadow$1.inner");

    private final class Inner implements WithDefault {
        @Override
        public ShadowStack shadow() {
            return s;
        }

        @Override
        public int inner(int levels) {
            s.push(INNER);
            try {
                s.at(__LINE__); return step(levels - 1) + 10;
            } finally {
                s.pop();
            }
        }
    }

    private final WithDefault[] inners = {new Inner(), new WithDefault() {
        @Override
        public ShadowStack shadow() {
            return s;
        }

        @Override
        public int inner(int levels) {
            s.push(ANONYMOUS);
            try {
                s.at(__LINE__); return leaf(levels) + 11;
            } finally {
                s.pop();
            }
        }
    }};

    // Small enough to be inlined into each other.

    private static final int SMALL_A = ShadowStack.id("truth.Shadow.smallA");
    private static final int SMALL_B = ShadowStack.id("truth.Shadow.smallB");
    private static final int SMALL_C = ShadowStack.id("truth.Shadow.smallC");

    private int smallA(int levels) {
        s.push(SMALL_A);
        try {
            s.at(__LINE__); int n = smallB(levels);
            s.at(__LINE__); return n + smallC(levels);
        } finally {
            s.pop();
        }
    }

    private int smallB(int levels) {
        s.push(SMALL_B);
        try {
            s.at(__LINE__); return smallC(levels) + 1;
        } finally {
            s.pop();
        }
    }

    private int smallC(int levels) {
        s.push(SMALL_C);
        try {
            s.at(__LINE__); return (levels & 1) == 0 ? leaf(levels) : Integer.bitCount(levels);
        } finally {
            s.pop();
        }
    }

    private static final int MANY_ARGUMENTS = ShadowStack.id("truth.Shadow.manyArguments");

    private int manyArguments(int a, long b, float c, double d, int e, long f, int g, String h, int levels) {
        s.push(MANY_ARGUMENTS);
        try {
            s.at(__LINE__); return step(levels - 1) + a + (int) (b + c + d) + e + (int) f + g + h.length();
        } finally {
            s.pop();
        }
    }

    // With -XX:CompileCommand=exclude,truth/*.interpreted* interpreted between compiled ones.

    private static final int INTERPRETED_A = ShadowStack.id("truth.Shadow.interpretedA");
    private static final int INTERPRETED_B = ShadowStack.id("truth.Shadow.interpretedB");

    private int interpretedA(int levels) {
        s.push(INTERPRETED_A);
        try {
            s.at(__LINE__); int n = smallB(levels);
            s.at(__LINE__); return n + interpretedB(levels, 2L, 3.0, "four");
        } finally {
            s.pop();
        }
    }

    private int interpretedB(int levels, long b, double c, String d) {
        s.push(INTERPRETED_B);
        try {
            s.at(__LINE__); return step(levels - 1) + (int) (b + c) + d.length();
        } finally {
            s.pop();
        }
    }

    private static final int ALLOCATING = ShadowStack.id("truth.Shadow.allocating");
    private Object kept;

    /** Slow paths of allocation, array copies, string building. */
    private int allocating(int n) {
        s.push(ALLOCATING);
        try {
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < n; i++) {
                s.at(__LINE__); text.append(i).append(',');
                kept = new long[n * 8];
            }
            s.at(__LINE__); return text.toString().hashCode();
        } finally {
            s.pop();
        }
    }

    private static final int SORTING = ShadowStack.id("truth.Shadow.sorting");
    private static final int COMPARE = ShadowStack.id("truth.Shadow.compare");

    /** A library method that calls back. */
    private int sorting(int levels) {
        s.push(SORTING);
        try {
            Integer[] numbers = new Integer[12];
            for (int i = 0; i < numbers.length; i++) {
                s.at(__LINE__); numbers[i] = (i * 7919 + levels) % 101;
            }
            s.at(__LINE__); Arrays.sort(numbers, this::compare);
            return numbers[3] * 3 + numbers[11];
        } finally {
            s.pop();
        }
    }

    private int compare(Integer a, Integer b) {
        s.push(COMPARE);
        try {
            s.at(__LINE__); return a.compareTo(b);
        } finally {
            s.pop();
        }
    }

    private static final int LOOPING = ShadowStack.id("truth.Shadow.looping");

    /** Long enough for OSR. */
    private int looping(int levels) {
        s.push(LOOPING);
        try {
            int sum = levels;
            for (int i = 0; i < 400; i++) {
                sum = sum * 31 + i;
                if ((i & 63) == 0) {
                    s.at(__LINE__); sum += smallC(i);
                }
            }
            return sum;
        } finally {
            s.pop();
        }
    }

    private static final int MAKER = ShadowStack.id("truth.Shadow$Maker.<init>");

    private final class Maker {
        final int made;

        Maker(int levels) {
            s.push(MAKER);
            try {
                IntSupplier supplier = () -> levels;
                s.at(__LINE__); made = step(supplier.getAsInt() - 1) + 12;
            } finally {
                s.pop();
            }
        }
    }

    // A call through a handle that compiled code takes for constant, until "storm" changes it: each change
    // throws away all code that contains the call, also while it is on the stack.

    private static final int THROUGH_SITE = ShadowStack.id("truth.Shadow.throughSite");
    private static final int SITE_ONE = ShadowStack.id("truth.Shadow.siteOne");
    private static final int SITE_TWO = ShadowStack.id("truth.Shadow.siteTwo");
    private static final MethodHandle[] TARGETS = {handle("siteOne", int.class), handle("siteTwo", int.class)};
    private static final MutableCallSite SITE = new MutableCallSite(TARGETS[0]);
    private static final MethodHandle INVOKER = SITE.dynamicInvoker();

    private int throughSite(int levels) {
        s.push(THROUGH_SITE);
        try {
            s.at(__LINE__); return (int) INVOKER.invokeExact(this, levels);
        } catch (RuntimeException | Error passing) {
            throw passing;
        } catch (Throwable impossible) {
            throw new AssertionError(impossible);
        } finally {
            s.pop();
        }
    }

    private int siteOne(int levels) {
        s.push(SITE_ONE);
        try {
            s.at(__LINE__); return step(levels - 1) + 13;
        } finally {
            s.pop();
        }
    }

    private int siteTwo(int levels) {
        s.push(SITE_TWO);
        try {
            s.at(__LINE__); int n = step(levels - 1);
            return 13 + n;
        } finally {
            s.pop();
        }
    }

    private static void storm() {
        try {
            for (int i = 1; true; i++) {
                SITE.setTarget(TARGETS[i & 1]);
                MutableCallSite.syncAll(new MutableCallSite[] {SITE});
                Thread.sleep(STORM_MS);
            }
        } catch (InterruptedException end) {
            throw new AssertionError(end);
        }
    }
}
