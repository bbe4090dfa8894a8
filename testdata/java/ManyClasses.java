package truth;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
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
        byte[] bytes = classFile("many/Class" + number, number % 1000);
        Class<?> made = defineClass("many.Class" + number, bytes, 0, bytes.length);
        return (IntUnaryOperator) made.getDeclaredConstructor().newInstance();
    }

    /** A class file by the JVM specification, chapter 4: a constructor, and applyAsInt(n) = n + plus. */
    private static byte[] classFile(String name, int plus) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream out = new DataOutputStream(bytes);
        out.writeInt(0xCAFEBABE);
        out.writeInt(49); // Java 5: no stack maps needed
        out.writeShort(16); // constants 1 to 15
        utf8(out, name); // 1
        constant(out, 7, 1); // 2: this class
        utf8(out, "java/lang/Object"); // 3
        constant(out, 7, 3); // 4
        utf8(out, "java/util/function/IntUnaryOperator"); // 5
        constant(out, 7, 5); // 6
        utf8(out, "<init>"); // 7
        utf8(out, "()V"); // 8
        constant(out, 12, 7); // 9: name and type of the constructor
        out.writeShort(8);
        constant(out, 10, 4); // 10: Object's constructor
        out.writeShort(9);
        utf8(out, "applyAsInt"); // 11
        utf8(out, "(I)I"); // 12
        utf8(out, "Code"); // 13
        utf8(out, "LineNumberTable"); // 14
        utf8(out, "SourceFile"); // 15
        out.writeShort(0x0031); // public final super
        out.writeShort(2);
        out.writeShort(4);
        out.writeShort(1);
        out.writeShort(6);
        out.writeShort(0); // no fields
        out.writeShort(2); // methods
        // aload_0, invokespecial Object.<init>, return
        method(out, 7, 8, 1, new byte[] {0x2a, (byte) 0xb7, 0, 10, (byte) 0xb1}, plus);
        // iload_1, sipush plus, iadd, ireturn
        method(out, 11, 12, 2, new byte[] {0x1b, 0x11, (byte) (plus >> 8), (byte) plus, 0x60, (byte) 0xac}, plus);
        out.writeShort(1); // attributes
        out.writeShort(15);
        out.writeInt(2);
        out.writeShort(1); // the class's own name serves as the source file's
        return bytes.toByteArray();
    }

    private static void utf8(DataOutputStream out, String text) throws IOException {
        out.writeByte(1);
        out.writeUTF(text);
    }

    private static void constant(DataOutputStream out, int tag, int index) throws IOException {
        out.writeByte(tag);
        out.writeShort(index);
    }

    private static void method(DataOutputStream out, int name, int type, int locals, byte[] code, int line) throws IOException {
        out.writeShort(1); // public
        out.writeShort(name);
        out.writeShort(type);
        out.writeShort(1); // attributes
        out.writeShort(13);
        out.writeInt(12 + code.length + 12);
        out.writeShort(2); // stack
        out.writeShort(locals);
        out.writeInt(code.length);
        out.write(code);
        out.writeShort(0); // no handlers
        out.writeShort(1); // attributes
        out.writeShort(14);
        out.writeInt(6);
        out.writeShort(1);
        out.writeShort(0); // from bytecode 0
        out.writeShort(line + 1);
    }
}
