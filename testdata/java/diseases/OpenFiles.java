package truth;

import java.io.FileInputStream;
import java.util.ArrayList;
import java.util.List;

/**
 * Sick: files are opened and not closed, 240 of them. (The test sets a limit of 256.)
 * Well: each is closed.
 */
public final class OpenFiles {
    public static void main(String[] args) throws Exception {
        boolean sick = Ward.sick(args);
        List<FileInputStream> open = new ArrayList<>();
        for (int i = 0; i < 240; i++) {
            FileInputStream in = new FileInputStream("/proc/self/status");
            if (sick) open.add(in);
            else in.close();
        }
        Ward.serve();
        open.clear();
    }
}
