package org.apache.hadoop.hbase;

import org.junit.rules.TestRule;
import org.junit.runner.Description;
import org.junit.runners.model.Statement;

/** Stands in the place of HBase's rule, which bounds the time of a class by its category. */
public final class HBaseClassTestRule implements TestRule {
  private HBaseClassTestRule() {
  }

  public static HBaseClassTestRule forClass(Class<?> tested) {
    return new HBaseClassTestRule();
  }

  @Override
  public Statement apply(Statement base, Description description) {
    return base;
  }
}
