package org.apache.hadoop.hbase.thrift;

import columnar.Store;
import org.apache.hadoop.conf.Configuration;

/** Stands in the place of HBase's class, which starts a gateway: both gateways are the store's ports. */
public class HBaseThriftTestingUtility {
  private int port;

  public int getServerPort() {
    return port;
  }

  public void startThriftServer(Configuration conf, ThriftMetrics.ThriftServerType type) {
    port = type == ThriftMetrics.ThriftServerType.ONE ? Store.THRIFT1 : Store.THRIFT2;
  }

  public void stopThriftServer() {
    // The store goes on.
  }
}
