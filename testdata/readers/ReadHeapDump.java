import java.io.File;
import java.util.*;
import org.netbeans.lib.profiler.heap.*;

/**
 * Reads a heap dump with the library behind VisualVM (org.gridkit.jvmtool:hprof-heap). Prints a line for each class
 * ("class NAME COUNT"), for each kind of root and, with a class's name as the second argument, the values of its static
 * fields. What stands behind it is a path of fields, as in jvmtool: it prints the value at its end.
 */
public class ReadHeapDump {
    public static void main(String[] args) throws Exception {
        Heap heap = HeapFactory.createHeap(new File(args[0]));
        Map<String, Long> counts = new TreeMap<>();
        for (JavaClass c : heap.getAllClasses())
            counts.merge(c.getName(), (long) c.getInstancesCount(), Long::sum);
        counts.forEach((name, n) -> System.out.println("class " + name + " " + n));
        Map<String, Integer> roots = new TreeMap<>();
        Set<Long> rooted = new HashSet<>();
        for (GCRoot root : heap.getGCRoots()) {
            roots.merge(root.getKind().replace(' ', '_'), 1, Integer::sum);
            if (root.getInstance() != null)
                rooted.add(root.getInstance().getInstanceId());
        }
        roots.forEach((kind, n) -> System.out.println("root " + kind + " " + n));
        for (GCRoot root : heap.getGCRoots())
            if (root instanceof ThreadObjectGCRoot) {
                StackTraceElement[] trace = ((ThreadObjectGCRoot) root).getStackTrace();
                Instance name = (Instance) root.getInstance().getValueOfField("name");
                System.out.println("thread " + text(name) + " " + (trace == null ? "" : Arrays.toString(trace)));
            }
        for (int i = 1; i < args.length; i++)
            show(heap, args[i], rooted);
    }

    static void show(Heap heap, String name, Set<Long> rooted) {
        JavaClass c = heap.getJavaClassByName(name);
        for (FieldValue v : c.getStaticFieldValues())
            System.out.println("static " + v.getField().getName() + " "
                    + (v instanceof ObjectFieldValue ? value(((ObjectFieldValue) v).getInstance(), 0) : v.getValue()));
        for (JavaClass nested : heap.getAllClasses()) {
            if (!nested.getName().startsWith(name + "$"))
                continue;
            long rootedHere = 0;
            for (Instance o : nested.getInstances())
                if (rooted.contains(o.getInstanceId()))
                    rootedHere++;
            System.out.println("nested " + nested.getName() + " " + nested.getInstancesCount() + " rooted " + rootedHere);
        }
    }

    static String text(Instance string) {
        if (string == null)
            return "null";
        PrimitiveArrayInstance value = (PrimitiveArrayInstance) string.getValueOfField("value");
        List<?> units = value.getValues();
        Object coder = string.getValueOfField("coder"); // absent up to 8, where the value is an array of chars
        StringBuilder b = new StringBuilder();
        if (coder == null)
            units.forEach(b::append);
        else if ((Byte) coder == 0)
            units.forEach(u -> b.append((char) (Byte.parseByte(u.toString()) & 0xff)));
        else
            for (int i = 0; i + 1 < units.size(); i += 2)
                b.append((char) (Byte.parseByte(units.get(i).toString()) & 0xff | Byte.parseByte(units.get(i + 1).toString()) << 8));
        return b.toString();
    }

    /** What an object is, in a line. Of maps and lists: what is in them, by their own fields. */
    static String value(Instance o, int depth) {
        if (o == null)
            return "null";
        String type = o.getJavaClass().getName();
        if (type.equals("java.lang.String"))
            return '"' + text(o) + '"';
        if (o instanceof PrimitiveArrayInstance) {
            List<?> all = ((PrimitiveArrayInstance) o).getValues();
            return type + all.subList(0, Math.min(all.size(), 8)) + "*" + all.size();
        }
        if (depth > 4)
            return type;
        StringBuilder b = new StringBuilder(type).append("{");
        if (o instanceof ObjectArrayInstance)
            for (Instance e : ((ObjectArrayInstance) o).getValues()) {
                if (e != null)
                    b.append(value(e, depth + 1)).append(' ');
            }
        else
            for (FieldValue v : o.getFieldValues())
                if (!v.getField().isStatic())
                    b.append(v.getField().getName()).append('=').append(v instanceof ObjectFieldValue
                            ? value(((ObjectFieldValue) v).getInstance(), depth + 1) : v.getValue()).append(' ');
        return b.append("}").toString();
    }
}
