package columnar;

import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.client.ClusterConnection;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.thrift.Constants;
import org.apache.hadoop.hbase.thrift2.client.ThriftConnection;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.transport.TSocket;
import org.apache.thrift.transport.TTransport;

/** The store under test: its two ports, and connections to them that are closed after each test. */
public final class Store {
  public static final String HOST = "127.0.0.1";
  public static final int THRIFT1 = Integer.getInteger("columnar.thrift1");
  public static final int THRIFT2 = Integer.getInteger("columnar.thrift2");
  private static final List<TTransport> OPEN = new ArrayList<>();
  private static Connection connection;

  private Store() {
  }

  public static TProtocol open(int port) {
    try {
      TSocket transport = new TSocket(HOST, port);
      transport.setTimeout(60_000);
      transport.open();
      synchronized (OPEN) {
        OPEN.add(transport);
      }
      return new TBinaryProtocol(transport);
    } catch (TException e) {
      throw new IllegalStateException("the store does not answer at port " + port, e);
    }
  }

  public static void closeAll() {
    synchronized (OPEN) {
      OPEN.forEach(TTransport::close);
      OPEN.clear();
    }
  }

  /** By HBase's own client over Thrift 2. */
  public static synchronized Connection connection() throws java.io.IOException {
    if (connection == null) {
      Configuration conf = HBaseConfiguration.create();
      conf.set(ClusterConnection.HBASE_CLIENT_CONNECTION_IMPL, ThriftConnection.class.getName());
      conf.set(Constants.HBASE_THRIFT_SERVER_NAME, HOST);
      conf.setInt(Constants.HBASE_THRIFT_SERVER_PORT, THRIFT2);
      connection = ConnectionFactory.createConnection(conf);
    }
    return connection;
  }
}
