package coffer;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * What applications do over the AWS SDK for Java: one line {@code ok STEP} for each step that went as
 * AWS documents it. The first that did not ends the program with status 1.
 *
 * <p>COFFER_ENDPOINT and COFFER_CA say where the server is and by which authority it is known, the
 * usual variables of AWS who we are.
 */
public final class Steps {
  interface Step {
    void run() throws Exception;
  }

  public static void main(String[] arguments) throws Exception {
    Server server = Server.fromEnvironment();
    Administration administration = new Administration(server);
    Objects objects = new Objects(server);
    Map<String, Step> steps = new LinkedHashMap<>();
    steps.put("buckets", administration::buckets);
    steps.put("tags", administration::tags);
    steps.put("policy", administration::policy);
    steps.put("cors", administration::cors);
    steps.put("lifecycle", administration::lifecycle);
    steps.put("settings", administration::settings);
    steps.put("objects", objects::objects);
    steps.put("conditions", objects::conditions);
    steps.put("checksums", objects::checksums);
    steps.put("streams", objects::streams);
    steps.put("uploads", objects::uploads);
    steps.put("presigned", objects::presigned);
    steps.put("listing", objects::listing);
    steps.put("versions", administration::versions);
    steps.put("locks", administration::locks);
    steps.put("removal", administration::removal);
    for (Map.Entry<String, Step> step : steps.entrySet()) {
      try {
        step.getValue().run();
        System.out.println("ok " + step.getKey());
      } catch (Exception | AssertionError error) {
        System.out.println("failed " + step.getKey());
        error.printStackTrace();
        System.exit(1);
      }
    }
  }

  static void same(Object expected, Object found) {
    if (!java.util.Objects.deepEquals(expected, found)) {
      throw new AssertionError("expected " + expected + ", found " + found);
    }
  }

  static void sameBytes(byte[] expected, byte[] found) {
    if (!Arrays.equals(expected, found)) {
      throw new AssertionError("expected " + expected.length + " bytes, found others");
    }
  }

  private Steps() {}
}
