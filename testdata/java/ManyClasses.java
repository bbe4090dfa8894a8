package truth;

import java.util.function.IntUnaryOperator;

/**
 * Proves: what a start costs on a JVM with many classes, and that names are right among many alike.
 *
 * It defines 10,000 classes (or as many as the first argument says) named many.ClassN, each written
 * byte by byte, and makes one object of each. Then the thread "busy" calls their method applyAsInt, one
 * after the other, for ever; all else is idle. "many.ClassN.applyAsInt" gives back its argument + N % 1000,
 * and stands at line N % 1000 + 1.
 */
public final class ManyClasses extends ClassLoader {
    private ManyClasses() {}

    private static volatile boolean stop;
    private static volatile long rounds;
    private static volatile String wrong = "";

    public static void main(String[] args) throws Exception {
        int count = args.length > 0 ? Integer.parseInt(args[0]) : 10_000;
        ManyClasses loader = new ManyClasses();
        IntUnaryOperator[] objects = new IntUnaryOperator[count];
        int sum = 0;
        for (int i = 0; i < count; i++) {
            objects[i] = loader.make(i);
            sum += i % 1000;
        }
        int expected = sum;
        Thread busy = new Thread(() -> callAll(objects, expected), "busy");
        busy.setDaemon(true);
        busy.start();
        while (rounds == 0 && wrong.isEmpty()) {
            Thread.sleep(2);
        }
        Control.serve((command, out) -> {
            Control.check(command.equals("rounds"), "no such command: " + command);
            out.println(rounds);
        }, () -> {
            stop = true;
            busy.join(20_000);
            Control.check(wrong.isEmpty(), wrong);
        });
    }

    private static void callAll(IntUnaryOperator[] objects, int expected) {
        while (!stop) {
            int sum = 0;
            for (IntUnaryOperator object : objects) {
                sum = object.applyAsInt(sum);
            }
            if (sum != expected) {
                wrong = sum + ", not " + expected;
                return;
            }
            rounds++;
        }
    }

    private IntUnaryOperator make(int number) throws Exception {
        int plus = number % 1000;
        ClassFile file = new ClassFile("many/Class" + number, "java/util/function/IntUnaryOperator", plus + 1);
        // iload_1, sipush plus, iadd, ireturn
        file.method(ClassFile.PUBLIC, "applyAsInt", "(I)I", 2, plus + 1, 0x1b, 0x11, plus >> 8, plus, 0x60, 0xac);
        byte[] bytes = file.bytes();
        Class<?> made = defineClass("many.Class" + number, bytes, 0, bytes.length);
        return (IntUnaryOperator) made.getDeclaredConstructor().newInstance();
    }
}
