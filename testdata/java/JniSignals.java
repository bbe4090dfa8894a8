package truth;

import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.util.Arrays;

/**
 * Proves: a signal handler of a native library is shown on top of what it interrupts, at whatever
 * instruction of Java that is.
 *
 * It is truth.Shadow, with a handler for SIGPROF (testdata/native/jnisignal.c) that a test calls by
 * sending that signal to one of its threads.
 *
 * Arguments: the library, "own" or "alternate" for the stack of the handler, a FILE for what the
 * handler tells (u32 handlers running, u32 run so far, u32 of those on the alternate stack) and
 * what it waits for (u32 looks that a test has taken), and then those of truth.Shadow.
 */
public final class JniSignals {
    private JniSignals() {}

    public static void main(String[] args) throws Exception {
        System.load(args[0]);
        ByteBuffer state;
        try (RandomAccessFile file = new RandomAccessFile(args[2], "rw")) {
            state = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 4_096).order(ByteOrder.LITTLE_ENDIAN);
        }
        install(state, args[1].equals("alternate"));
        Shadow.main(Arrays.copyOfRange(args, 3, args.length));
    }

    private static native void install(ByteBuffer state, boolean alternate);
}
