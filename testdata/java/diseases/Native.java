package truth;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * From the command "load" on:
 * Sick: direct buffers are made and kept: 16 MB a second.
 * Well: the process grows as fast, but by its heap, which reaches pages for the first time.
 */
public final class Native {
    private static final int PIECE = 1 << 20;
    private static final int MOST = 800;

    public static void main(String[] args) {
        boolean sick = Ward.sick(args);
        List<Object> kept = new ArrayList<>();
        Control.serve((command, out) -> {
            Control.check(command.equals("load"), "no such command: " + command);
            if (sick) { // as much as the least limit of a test has room for
                for (int i = 0; i < 2; i++) kept.add(ByteBuffer.allocateDirect(PIECE));
            }
            Ward.start("loader", () -> {
                for (int i = 0; i < MOST; i++) {
                    if (sick) kept.add(ByteBuffer.allocateDirect(PIECE));
                    else kept.add(new byte[PIECE]);
                    if (!sick && kept.size() > 50) kept.clear();
                    Thread.sleep(1000 * PIECE / (16 << 20));
                }
            });
        }, () -> { });
    }
}
