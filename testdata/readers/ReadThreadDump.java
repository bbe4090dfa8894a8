import java.nio.file.Files;
import java.nio.file.Path;

import me.bechberger.jthreaddump.model.DeadlockInfo;
import me.bechberger.jthreaddump.model.LockInfo;
import me.bechberger.jthreaddump.model.StackFrame;
import me.bechberger.jthreaddump.model.ThreadDump;
import me.bechberger.jthreaddump.model.ThreadInfo;
import me.bechberger.jthreaddump.parser.ThreadDumpParser;

/** Says what jstall's parser, jthreaddump, finds in a thread dump: a line for each thing, its parts separated by tabs. */
class ReadThreadDump {
    public static void main(String[] args) throws Exception {
        ThreadDump dump = ThreadDumpParser.parse(Files.readString(Path.of(args[0])));
        say("VM", dump.jvmInfo());
        for (ThreadInfo t : dump.threads()) {
            say("THREAD", t.name(), t.threadId(), t.nativeId(), t.priority(), Boolean.TRUE.equals(t.daemon()), t.state(),
                t.cpuTimeSec(), t.elapsedTimeSec(), t.carryingVirtualThreadId());
            for (StackFrame f : t.stackTrace()) {
                say("FRAME", f.className() + "." + f.methodName(), f.fileName(), f.lineNumber(),
                    Boolean.TRUE.equals(f.nativeMethod()));
            }
            for (LockInfo l : t.locks()) {
                say("LOCK", l.operation(), l.lockId(), l.className());
            }
        }
        for (DeadlockInfo d : dump.deadlockInfos()) {
            for (DeadlockInfo.DeadlockedThread t : d.threads()) {
                say("DEADLOCK", t.threadName(), t.heldBy(), t.stackTrace().size(), t.locks().size());
            }
        }
    }

    private static void say(Object... parts) {
        StringBuilder line = new StringBuilder();
        for (Object part : parts) {
            line.append(line.length() == 0 ? "" : "\t").append(part == null ? "-" : part);
        }
        System.out.println(line);
    }
}
