package org.apache.hadoop.hbase.testclassification;

/** A category of HBase's tests, whose own module is not published. */
public interface LargeTests {
}
