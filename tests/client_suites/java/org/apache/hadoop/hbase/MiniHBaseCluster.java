package org.apache.hadoop.hbase;

import org.apache.hadoop.hbase.master.HMaster;

/** The store, in the place of a cluster within the process. */
public class MiniHBaseCluster {
  public HMaster getMaster() {
    return new HMaster();
  }
}
