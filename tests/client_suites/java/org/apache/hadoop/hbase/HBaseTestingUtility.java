package org.apache.hadoop.hbase;

import columnar.Store;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptor;

/**
 * Stands in the place of HBase's class of this name, which starts a cluster within the process: the cluster is the
 * store, which runs already, and "free" ports are those at which it answers.
 */
public class HBaseTestingUtility {
  private static final Deque<Integer> PORTS = new ArrayDeque<>(List.of(Store.THRIFT2, Store.THRIFT2));
  private final Configuration configuration = HBaseConfiguration.create();

  public Configuration getConfiguration() {
    return configuration;
  }

  public MiniHBaseCluster startMiniCluster() {
    return new MiniHBaseCluster();
  }

  public MiniHBaseCluster startMiniCluster(int servers) {
    return new MiniHBaseCluster();
  }

  public MiniHBaseCluster getMiniHBaseCluster() {
    return new MiniHBaseCluster();
  }

  public void shutdownMiniCluster() {
    Store.closeAll();
  }

  public static int randomFreePort() {
    return PORTS.isEmpty() ? Store.THRIFT2 : PORTS.remove();
  }

  public Connection getConnection() throws IOException {
    return Store.connection();
  }

  public Admin getAdmin() throws IOException {
    return Store.connection().getAdmin();
  }

  public Table createTable(TableDescriptor table, byte[][] splits) throws IOException {
    getAdmin().createTable(table, splits);
    return getConnection().getTable(table.getTableName());
  }

  public void deleteTable(TableName table) throws IOException {
    Admin admin = getAdmin();
    if (admin.isTableEnabled(table)) {
      admin.disableTable(table);
    }
    admin.deleteTable(table);
  }

  public void waitTableEnabled(byte[] table, long timeoutMs) {
    // A table is enabled when the call that enables it returns.
  }

  public <E extends Exception> long waitFor(long timeoutMs, Waiter.Predicate<E> predicate) throws E {
    if (!predicate.evaluate()) {
      throw new AssertionError("it was to be so at once");
    }
    return 0;
  }
}
