package org.apache.hadoop.hbase.master;

import columnar.Store;
import org.apache.hadoop.hbase.thrift.generated.Hbase;
import org.apache.thrift.TException;

/** The store's master, as far as a test asks it: by Thrift 1, where the test asks by Thrift 2. */
public class HMaster {
  public String getClusterId() {
    try {
      return new Hbase.Client(Store.open(Store.THRIFT1)).getClusterId();
    } catch (TException e) {
      throw new IllegalStateException(e);
    }
  }
}
