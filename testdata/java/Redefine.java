package truth;

import java.lang.instrument.ClassDefinition;
import java.lang.instrument.Instrumentation;
import java.util.function.IntUnaryOperator;

/**
 * A class that is redefined while it runs, for Churn. churn.R.run calls churn.R.even from line 10, or, in
 * its other version, churn.R.odd from line 20: any other pair is a method or a line of another version.
 *
 * It is an agent, too, because only agents may redefine: -javaagent:JAR, of a jar whose manifest names
 * this class and says that it can redefine classes.
 */
public final class Redefine {
    private static final int STEPS = 500;

    private static volatile Instrumentation instrumentation;
    private static IntUnaryOperator running;
    private static int version;

    private Redefine() {}

    public static void premain(String arguments, Instrumentation given) {
        instrumentation = given;
    }

    /** Whether the JVM was started with this agent. */
    static boolean possible() {
        return instrumentation != null;
    }

    static synchronized IntUnaryOperator running() throws Exception {
        if (running == null) {
            running = new Churn.Loader().make("churn.R", generate(0));
        }
        return running;
    }

    /** Makes the other version the one that the next call runs. */
    static void next() throws Exception {
        version++;
        instrumentation.redefineClasses(new ClassDefinition(running().getClass(), generate(version % 2)));
    }

    static void run() throws Exception {
        IntUnaryOperator made = running();
        for (int i = 0; i < 100; i++) {
            int result = made.applyAsInt(i);
            Control.check(result == expected(i) + 1, "redefined: " + result + " for " + i);
        }
    }

    private static byte[] generate(int odd) {
        ClassFile file = new ClassFile("churn/R", "java/util/function/IntUnaryOperator", 1);
        int callRun = file.call("churn/R", "run", "(I)I");
        int callLeaf = file.call("churn/R", odd == 1 ? "odd" : "even", "(I)I");
        // iload_1, invokestatic run, ireturn
        file.method(ClassFile.PUBLIC, "applyAsInt", "(I)I", 2, 2, 0x1b, 0xb8, callRun >> 8, callRun, 0xac);
        // iload_0, invokestatic even or odd, iconst_1, iadd, ireturn
        file.method(ClassFile.STATIC, "run", "(I)I", 1, 10 + 10 * odd, 0x1a, 0xb8, callLeaf >> 8, callLeaf, 0x04, 0x60, 0xac);
        for (String leaf : new String[] {"even", "odd"}) {
            file.method(ClassFile.STATIC, leaf, "(I)I", 2, 4, Churn.loop(STEPS));
        }
        return file.bytes();
    }

    private static int expected(int n) {
        for (int i = 0; i < STEPS; i++) {
            n = n * 31 + i;
        }
        return n;
    }
}
