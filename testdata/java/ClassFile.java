package truth;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.HashMap;
import java.util.Map;

/**
 * Writes small class files (JVM specification, chapter 4), for programs that need many classes or ever
 * new ones. A class has a public constructor without arguments, implements one interface, and has
 * the methods that are added. It is of Java 5's format, so that loops need no stack maps.
 */
final class ClassFile {
    static final int PUBLIC = 1;
    static final int STATIC = 8;
    private static final int FINAL = 0x10;
    private static final int SUPER = 0x20;

    private final ByteArrayOutputStream poolBytes = new ByteArrayOutputStream();
    private final DataOutputStream pool = new DataOutputStream(poolBytes);
    private final Map<String, Integer> poolIndex = new HashMap<>();
    private final ByteArrayOutputStream methodBytes = new ByteArrayOutputStream();
    private final DataOutputStream methods = new DataOutputStream(methodBytes);
    private int methodCount;
    private final int self;
    private final int parent;
    private final int implemented;

    /** Names with slashes. */
    ClassFile(String name, String implemented, int constructorLine) {
        self = type(name);
        parent = type("java/lang/Object");
        this.implemented = type(implemented);
        int superConstructor = call("java/lang/Object", "<init>", "()V");
        // aload_0, invokespecial, return
        method(PUBLIC, "<init>", "()V", 1, constructorLine, 0x2a, 0xb7, superConstructor >> 8, superConstructor, 0xb1);
    }

    /** Adds a method whose whole code stands in one line. */
    void method(int access, String name, String type, int locals, int line, int... code) {
        try {
            int codeName = utf8("Code");
            int linesName = utf8("LineNumberTable");
            methods.writeShort(access);
            methods.writeShort(utf8(name));
            methods.writeShort(utf8(type));
            methods.writeShort(1); // attributes
            methods.writeShort(codeName);
            methods.writeInt(12 + code.length + 12);
            methods.writeShort(4); // operand stack
            methods.writeShort(locals);
            methods.writeInt(code.length);
            for (int one : code) {
                methods.writeByte(one);
            }
            methods.writeShort(0); // no handlers
            methods.writeShort(1); // attributes
            methods.writeShort(linesName);
            methods.writeInt(6);
            methods.writeShort(1);
            methods.writeShort(0); // from bytecode 0
            methods.writeShort(line);
            methodCount++;
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
    }

    /** The constant for a call of a method. */
    int call(String owner, String name, String type) {
        int named = constant("nt " + name + type, 12, utf8(name), utf8(type));
        return constant("call " + owner + name + type, 10, type(owner), named);
    }

    private int type(String name) {
        return constant("type " + name, 7, utf8(name));
    }

    private int constant(String key, int tag, int... indexes) {
        return poolIndex.computeIfAbsent(key, absent -> {
            try {
                pool.writeByte(tag);
                for (int index : indexes) {
                    pool.writeShort(index);
                }
                return poolIndex.size() + 1;
            } catch (IOException impossible) {
                throw new UncheckedIOException(impossible);
            }
        });
    }

    private int utf8(String text) {
        return poolIndex.computeIfAbsent("utf8 " + text, absent -> {
            try {
                pool.writeByte(1);
                pool.writeUTF(text);
                return poolIndex.size() + 1;
            } catch (IOException impossible) {
                throw new UncheckedIOException(impossible);
            }
        });
    }

    byte[] bytes() {
        try {
            int sourceFile = utf8("SourceFile");
            int sourceName = utf8("Generated.java");
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(bytes);
            out.writeInt(0xCAFEBABE);
            out.writeInt(49);
            out.writeShort(poolIndex.size() + 1);
            poolBytes.writeTo(out);
            out.writeShort(PUBLIC | FINAL | SUPER);
            out.writeShort(self);
            out.writeShort(parent);
            out.writeShort(1);
            out.writeShort(implemented);
            out.writeShort(0); // no fields
            out.writeShort(methodCount);
            methodBytes.writeTo(out);
            out.writeShort(1); // attributes
            out.writeShort(sourceFile);
            out.writeInt(2);
            out.writeShort(sourceName);
            return bytes.toByteArray();
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
    }
}
