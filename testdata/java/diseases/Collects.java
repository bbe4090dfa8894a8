package truth;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/** Sick: the JVM collects all the time, for a reason that no larger heap mends. The second argument says for which. */
public final class Collects {
    static volatile Object sink;

    public static void main(String[] args) throws Exception {
        Control.check(Ward.sick(args), "there is no other way");
        List<Object> live = new ArrayList<>();
        for (int i = 0; i < 1_500_000; i++) live.add(new int[4]); // a collection takes its time
        switch (args[1]) {
            case "asked": Ward.forever("cleaner", Collects::tidyUp); break;
            case "direct": Ward.forever("reader", Collects::readFile); break;
            case "humongous": Ward.forever("loader", () -> sink = new byte[3 << 20]); break;
            default: throw new IllegalArgumentException(args[1]);
        }
        Thread.sleep(500);
        Ward.serve();
        sink = live;
    }

    static void tidyUp() throws Exception {
        System.gc();
        Thread.sleep(20);
    }

    /** -XX:MaxDirectMemorySize=16m */
    static void readFile() {
        ByteBuffer.allocateDirect(12 << 20).put(0, (byte) 1);
    }
}
