import java.io.File;
import java.util.*;
import org.eclipse.mat.parser.internal.SnapshotFactory;
import org.eclipse.mat.snapshot.ISnapshot;
import org.eclipse.mat.snapshot.model.*;
import org.eclipse.mat.util.*;

/**
 * Reads a heap dump with the parser of Eclipse MAT (com.squareup.haha:haha 1.x repackages it). Prints what it warns of, a
 * line for each class ("class NAME COUNT", of objects that roots keep) and each frame and, for the class that the second
 * argument names, its static fields, with how much an object keeps alive.
 */
public class ReadWithMAT {
    public static void main(String[] args) throws Exception {
        ISnapshot heap = new SnapshotFactory().openSnapshot(new File(args[0]), new HashMap<>(), new VoidProgressListener() {
            @Override
            public void sendUserMessage(IProgressListener.Severity severity, String message, Throwable exception) {
                System.out.println(severity + " " + message + (exception == null ? "" : " " + exception));
            }
        });
        for (IClass c : heap.getClasses())
            System.out.println("class " + c.getName() + " " + c.getNumberOfObjects());
        for (int id : heap.getGCRoots()) {
            IThreadStack stack = heap.getThreadStack(id);
            if (stack != null)
                for (IStackFrame frame : stack.getStackFrames())
                    System.out.println("frame " + frame.getText());
        }
        for (IClass c : heap.getClassesByName(args[1], false))
            for (Field f : c.getStaticFields()) {
                Object v = f.getValue();
                System.out.println("static " + f.getName() + " " + (v instanceof ObjectReference
                        ? "retains " + ((ObjectReference) v).getObject().getRetainedHeapSize() : v));
            }
    }
}
