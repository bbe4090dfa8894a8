package truth;

import static truth.ShadowStack.__LINE__;

import java.nio.ByteBuffer;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;

/**
 * Proves: stacks in which Java calls C and C calls Java, many times over, are known frame by frame at
 * whatever instruction the thread stops; C without unwind information costs its own frames only.
 *
 * A thread runs seeded random trees of such calls. Java methods and C functions alike keep a shadow of
 * the stack (JniShadow); the native methods, which are frames of their own, do not: they stand between
 * a Java method and the function NAME_outer, whenever it was not C that called that. The functions
 * are in testdata/native/jnichain.c, in shapes that are hard to unwind, each compiled with unwind
 * information (Cfi) and without (Bare). At its end C calls back, or calls C of the other library,
 * or spins, sleeps, or calls what HotSpot has generated for C. Java throws exceptions through C. Each
 * tree is run twice and must give the same number both times.
 *
 * Arguments: FILE of the shadow, the library with unwind information, the one without, and "java",
 * "Cfi" or "Bare" for who has made the thread: Java, or C of either library, which has attached it.
 * The command "trees" prints how many trees were run.
 */
public final class JniChain implements Runnable {
    // What C does at its end, as jnichain.c has it.
    private static final int BACK = 0;
    private static final int OTHER = 1;
    private static final int SPIN = 2;
    private static final int SLEEP = 3;
    private static final int FIELD = 4;

    /** Trees before the program says that it is ready: code that is to be compiled is. */
    private static final int WARM = 1_500;
    private static final int LEVELS = 9;

    private static final String[] SHAPES = {"plain", "alloca", "realigned", "saved", "expression"};

    private static JniShadow s;
    private static Random random;
    /** Calls that the present tree may still make. */
    private static int budget;

    /** A field that C reads. */
    private final int seven = 7;

    private volatile long trees;
    private volatile boolean stop;
    private volatile boolean ended;
    private volatile Throwable wrong;

    public static void main(String[] args) throws Exception {
        nameFunctions("Cfi", 101);
        nameFunctions("Bare", 201);
        s = new JniShadow(args[0]);
        System.load(args[1]);
        System.load(args[2]);
        JniChain chain = new JniChain();
        initCfi(s.region, tableBare(), chain);
        initBare(s.region, tableCfi(), chain);
        switch (args[3]) {
            case "Cfi": Control.check(attachCfi(chain), "no thread"); break;
            case "Bare": Control.check(attachBare(chain), "no thread"); break;
            default:
                Thread thread = new Thread(chain, "jni-chain");
                thread.setDaemon(true);
                thread.start();
        }
        boolean interpreted = System.getProperty("java.vm.info", "").contains("interpreted");
        while (chain.trees < (interpreted ? 1 : WARM)) {
            Control.check(chain.wrong == null, String.valueOf(chain.wrong));
            Thread.sleep(2);
        }
        Control.serve((command, out) -> {
            Control.check(command.equals("trees"), "no such command: " + command);
            out.println(chain.trees);
        }, () -> {
            chain.stop = true;
            for (int i = 0; i < 6_000 && !chain.ended; i++) {
                Thread.sleep(10);
            }
            Control.check(chain.ended, "the thread hangs");
            if (chain.wrong != null) {
                throw new IllegalStateException(chain.wrong);
            }
        });
    }

    private static void nameFunctions(String library, int first) {
        for (int i = 0; i < SHAPES.length; i++) {
            JniShadow.id(first + 2 * i, SHAPES[i] + library + "_outer");
            JniShadow.id(first + 2 * i + 1, SHAPES[i] + library + "_inner");
        }
        JniShadow.id(first + 2 * SHAPES.length, "attached" + library + "_root");
    }

    private static native void initCfi(ByteBuffer shadow, long others, JniChain object);
    private static native void initBare(ByteBuffer shadow, long others, JniChain object);
    private static native boolean attachCfi(JniChain chain);
    private static native boolean attachBare(JniChain chain);
    private static native long tableCfi();
    private static native long tableBare();

    private static native int plainCfi(int then, int levels);
    private static native int allocaCfi(int then, int levels);
    private static native int realignedCfi(int then, int levels);
    private static native int savedCfi(int then, int levels);
    private static native int expressionCfi(int then, int levels);
    private static native int plainBare(int then, int levels);
    private static native int allocaBare(int then, int levels);
    private static native int realignedBare(int then, int levels);
    private static native int savedBare(int then, int levels);
    private static native int expressionBare(int then, int levels);

    private static final int RUN = JniShadow.id(1, "truth.JniChain.run");

    @Override
    public void run() {
        try {
            s.begin();
            s.push(RUN);
            for (int seed = 1; !stop; seed++) {
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
            ended = true;
        }
    }

    private static final int TREE = JniShadow.id(2, "truth.JniChain.tree");

    private static int tree(int seed) {
        s.push(TREE);
        try {
            s.seed(seed);
            random = new Random(seed);
            budget = 40;
            int depth = s.depth();
            int sum = 0;
            while (budget > 0) {
                s.at(__LINE__); sum = 31 * sum + catching(LEVELS);
            }
            Control.check(s.depth() == depth, "the shadow is off by " + (s.depth() - depth));
            return sum;
        } finally {
            s.pop();
        }
    }

    private static final int CATCHING = JniShadow.id(3, "truth.JniChain.catching");

    private static int catching(int levels) {
        s.push(CATCHING);
        int depth = s.depth();
        try {
            s.at(__LINE__); return step(levels);
        } catch (Thrown thrown) {
            Control.check(s.depth() == depth, "the shadow is off by " + (s.depth() - depth));
            return thrown.number;
        } finally {
            s.pop();
        }
    }

    private static final int BACK_FROM_C = JniShadow.id(4, "truth.JniChain.back");

    /** C calls it. */
    static int back(int levels) {
        s.push(BACK_FROM_C);
        try {
            s.at(__LINE__); int sum = step(levels);
            if (random.nextInt(3) == 0) {
                s.at(__LINE__); sum += 7 * catching(levels);
            }
            return sum;
        } finally {
            s.pop();
        }
    }

    private static final int STEP = JniShadow.id(5, "truth.JniChain.step");

    /** Calls C, which may call back to go so many levels deeper. */
    private static int step(int levels) {
        s.push(STEP);
        try {
            if (levels == 0 || --budget <= 0) {
                s.at(__LINE__); return leaf(levels);
            }
            int then = then();
            switch (random.nextInt(12)) {
                case 0: s.at(__LINE__); return plainCfi(then, levels - 1);
                case 1: s.at(__LINE__); return allocaCfi(then, levels - 1);
                case 2: s.at(__LINE__); return realignedCfi(then, levels - 1);
                case 3: s.at(__LINE__); return savedCfi(then, levels - 1);
                case 4: s.at(__LINE__); return expressionCfi(then, levels - 1);
                case 5: s.at(__LINE__); return plainBare(then, levels - 1);
                case 6: s.at(__LINE__); return allocaBare(then, levels - 1);
                case 7: s.at(__LINE__); return realignedBare(then, levels - 1);
                case 8: s.at(__LINE__); return savedBare(then, levels - 1);
                case 9: s.at(__LINE__); return expressionBare(then, levels - 1);
                case 10: s.at(__LINE__); return step(levels - 1);
                default: s.at(__LINE__); return leaf(levels);
            }
        } finally {
            s.pop();
        }
    }

    /** Mostly back to Java, sometimes by way of the other library's C, sometimes to C's own loops. */
    private static int then() {
        int then = BACK;
        switch (random.nextInt(64)) {
            case 0: then = SLEEP; break;
            case 1: case 2: then = SPIN; break;
            case 3: case 4: then = FIELD; break;
            case 5: case 6: case 7: case 8: case 9: case 10: case 11: then = OTHER; break;
            default:
        }
        for (int shift = 4; then >> shift - 4 == OTHER && shift < 12; shift += 4) {
            then |= random.nextInt(SPIN + 1) << shift;
        }
        // Which method of the other library: any bits do.
        return then | random.nextInt(100) << 16;
    }

    private static final int LEAF = JniShadow.id(6, "truth.JniChain.leaf");

    private static int leaf(int n) {
        s.push(LEAF);
        try {
            switch (random.nextInt(80)) {
                case 0: LockSupport.parkNanos(1_000); return n;
                case 1: case 2: case 3: case 4: case 5: case 6: case 7: throw new Thrown(n + random.nextInt(100));
                default: return sum(random.nextInt(300)) + n;
            }
        } finally {
            s.pop();
        }
    }

    private static int sum(int n) {
        int sum = 0;
        for (int i = 0; i < n; i++) {
            sum = 31 * sum + i;
        }
        return sum;
    }

    /** Goes through C up to the nearest method that catches it. */
    private static final class Thrown extends RuntimeException {
        private static final long serialVersionUID = 1;
        private final int number;

        Thrown(int number) {
            super(null, null, false, false);
            this.number = number;
        }
    }
}
