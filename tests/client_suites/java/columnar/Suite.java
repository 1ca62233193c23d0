package columnar;

import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.hbase.NamespaceDescriptor;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.thrift.generated.Hbase;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.Result;
import org.junit.runner.manipulation.Filter;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/**
 * Runs test classes of HBase against the store, and says of each test how it ended, one line each.
 *
 * <pre>Suite CLASS NOT,THAT [PARTS]</pre>
 *
 * A class whose test is the sequence of several parts is given with the name of that test (PARTS): its parts, the
 * methods named "doTest...", are run and told one by one.
 */
public final class Suite {
  private static final PrintStream OUT = System.out;

  private Suite() {
  }

  public static void main(String[] args) throws Exception {
    System.setOut(System.err);
    Class<?> tested = Class.forName(args[0]);
    Set<String> without = new HashSet<>(args.length > 1 ? Arrays.asList(args[1].split(",")) : List.of());
    empty();
    if (args.length > 2) {
      without.add(args[2]);
      runParts(tested);
    }
    JUnitCore core = new JUnitCore();
    core.addListener(new Teller());
    Result result = core.run(Request.aClass(tested).filterWith(new Without(without)));
    Store.closeAll();
    OUT.flush();
    System.exit(result.wasSuccessful() ? 0 : 1);
  }

  /** No tables and no namespaces but the store's own, as after the start of a cluster. */
  static void empty() throws Exception {
    Hbase.Client client = new Hbase.Client(Store.open(Store.THRIFT1));
    for (ByteBuffer table : client.getTableNames()) {
      if (client.isTableEnabled(table)) {
        client.disableTable(table);
      }
      client.deleteTable(table);
    }
    try (Admin admin = Store.connection().getAdmin()) {
      for (NamespaceDescriptor one : admin.listNamespaceDescriptors()) {
        if (!one.getName().equals("default") && !one.getName().equals("columnar")) {
          admin.deleteNamespace(one.getName());
        }
      }
    }
  }

  private static void runParts(Class<?> tested) throws Exception {
    Object instance = tested.getDeclaredConstructor().newInstance();
    for (Method method : tested.getDeclaredMethods()) {
      if (method.getName().startsWith("doTest") && method.getParameterCount() == 0) {
        method.setAccessible(true);
        Throwable failure = null;
        try {
          method.invoke(instance);
        } catch (InvocationTargetException e) {
          failure = e.getCause();
          empty();
        }
        tell(method.getName(), failure);
      }
    }
  }

  private static synchronized void tell(String test, Throwable failure) {
    if (failure == null) {
      OUT.println("passed " + test);
      return;
    }
    OUT.println("failed " + test + " " + String.valueOf(failure).replace('\n', ' '));
    failure.printStackTrace();
  }

  private static final class Without extends Filter {
    private final Set<String> names;

    Without(Set<String> names) {
      this.names = names;
    }

    @Override
    public boolean shouldRun(Description one) {
      return !one.isTest() || !names.contains(one.getMethodName());
    }

    @Override
    public String describe() {
      return "without " + names;
    }
  }

  private static final class Teller extends RunListener {
    private Throwable failure;

    @Override
    public void testStarted(Description one) {
      failure = null;
    }

    @Override
    public void testFailure(Failure one) {
      failure = one.getException();
      if (one.getDescription().getMethodName() == null) {
        tell("setUp", failure);
      }
    }

    @Override
    public void testFinished(Description one) {
      tell(one.getMethodName(), failure);
    }
  }
}
