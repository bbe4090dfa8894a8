package truth;

import java.util.ArrayList;
import java.util.List;

/**
 * Each second thirty methods more are run often, of classes that are there from the start. Sick: the test keeps the
 * JVM's compilers from running. Well: they run.
 */
public final class Uncompiled {
    private static final int CLASSES = 6000;
    /** The JVM wants the more calls of a method the longer its queue is (Tier3LoadFeedback). */
    private static final int CALLS = 60_000;
    private static final List<Runnable> rules = new ArrayList<>();
    private static volatile int hot;

    private Uncompiled() {}

    private static final class Definer extends ClassLoader {
        Runnable define(int i) throws Exception {
            ClassFile made = new ClassFile("truth/Rule" + i, "java/lang/Runnable", 1);
            // iconst_0, istore_1; iinc 1 1; return
            made.method(ClassFile.PUBLIC, "run", "()V", 2, 1, 0x03, 0x3c, 0x84, 1, 1, 0xb1);
            byte[] code = made.bytes();
            Class<?> rule = defineClass(null, code, 0, code.length);
            return (Runnable) rule.getDeclaredConstructor().newInstance();
        }
    }

    public static void main(String[] args) throws Exception {
        Ward.sick(args);
        Definer definer = new Definer();
        for (int i = 0; i < CLASSES; i++) rules.add(definer.define(i));
        Control.serve((command, out) -> begin(), () -> { });
    }

    private static void begin() {
        hot = 300;
        for (int i = 0; i < hot; i++) run(i);
        Ward.forever("rules", () -> {
            for (int end = Math.min(hot + 3, CLASSES); hot < end; hot++) run(hot);
            for (int i = 0; i < 20; i++) run(i);
            Thread.sleep(100);
        });
    }

    private static void run(int rule) {
        for (int k = 0; k < CALLS; k++) rules.get(rule).run();
    }
}
