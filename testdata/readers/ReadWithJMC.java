import java.io.File;
import java.util.Map;
import java.util.TreeMap;
import org.openjdk.jmc.common.IMCFrame;
import org.openjdk.jmc.common.IMCStackTrace;
import org.openjdk.jmc.common.item.IItem;
import org.openjdk.jmc.common.item.IItemCollection;
import org.openjdk.jmc.common.item.IItemIterable;
import org.openjdk.jmc.common.item.IMemberAccessor;
import org.openjdk.jmc.common.unit.IQuantity;
import org.openjdk.jmc.common.unit.UnitLookup;
import org.openjdk.jmc.common.util.IPreferenceValueProvider;
import org.openjdk.jmc.flightrecorder.JfrAttributes;
import org.openjdk.jmc.flightrecorder.JfrLoaderToolkit;
import org.openjdk.jmc.flightrecorder.jdk.JdkAttributes;
import org.openjdk.jmc.flightrecorder.rules.IResult;
import org.openjdk.jmc.flightrecorder.rules.IRule;
import org.openjdk.jmc.flightrecorder.rules.RuleRegistry;
import org.openjdk.jmc.flightrecorder.rules.util.RulesToolkit;

/** Prints what JMC's reader finds in a recording: how many events of each type, their weights, samples by their topmost frame, and what its rules say. */
public class ReadWithJMC {
    public static void main(String[] args) throws Exception {
        IItemCollection items = JfrLoaderToolkit.loadEvents(new File(args[0]));
        Map<String, Long> lines = new TreeMap<>();
        for (IItemIterable of : items) {
            String type = of.getType().getIdentifier();
            lines.merge("events " + type, of.getItemCount(), Long::sum);
            lines.put("label " + type + " " + of.getType().getName(), 1L);
            IMemberAccessor<IMCStackTrace, IItem> stack = JfrAttributes.EVENT_STACKTRACE.getAccessor(of.getType());
            IMemberAccessor<IQuantity, IItem> weight = JdkAttributes.SAMPLE_WEIGHT.getAccessor(of.getType());
            if (weight != null) {
                for (IItem item : of) {
                    lines.merge("bytes " + type, weight.getMember(item).clampedLongValueIn(UnitLookup.BYTE), Long::sum);
                }
            }
            if (stack == null || !type.endsWith("Sample")) {
                continue;
            }
            for (IItem item : of) {
                IMCStackTrace trace = stack.getMember(item);
                if (trace == null || trace.getFrames().isEmpty()) {
                    lines.merge("top " + type + " nothing", 1L, Long::sum);
                    continue;
                }
                IMCFrame top = trace.getFrames().get(0);
                lines.merge("top " + type + " " + top.getMethod().getType().getFullName() + "#" + top.getMethod().getMethodName()
                        + ":" + top.getFrameLineNumber() + " " + top.getType(), 1L, Long::sum);
            }
        }
        lines.forEach((line, n) -> System.out.println(n + " " + line));
        Map<IRule, ? extends java.util.concurrent.Future<IResult>> results = RulesToolkit.evaluateParallel(RuleRegistry.getRules(), items,
                IPreferenceValueProvider.DEFAULT_VALUES, 1);
        for (Map.Entry<IRule, ? extends java.util.concurrent.Future<IResult>> e : results.entrySet()) {
            System.out.println("rule " + e.getKey().getId() + " " + e.getValue().get().getSeverity());
        }
    }
}
