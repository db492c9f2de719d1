package coffer;

import java.io.InputStream;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import software.amazon.awssdk.awscore.exception.AwsServiceException;
import software.amazon.awssdk.core.retry.RetryMode;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.S3Configuration;
import software.amazon.awssdk.services.s3.model.S3Exception;
import software.amazon.awssdk.services.s3.presigner.S3Presigner;

/** The server under test: its clients, and what it must refuse. */
record Server(S3Client s3, S3Presigner presigner, SSLContext tls) {
  static final String BUCKET = "java";

  static Server fromEnvironment() throws Exception {
    URI endpoint = URI.create(System.getenv("COFFER_ENDPOINT"));
    TrustManager[] trust = trustOf(Path.of(System.getenv("COFFER_CA")));
    SSLContext tls = SSLContext.getInstance("TLS");
    tls.init(null, trust, null);
    S3Client s3 =
        S3Client.builder()
            .endpointOverride(endpoint)
            .region(Region.US_EAST_1)
            .forcePathStyle(true)
            .httpClient(
                UrlConnectionHttpClient.builder().tlsTrustManagersProvider(() -> trust).build())
            .overrideConfiguration(options -> options.retryStrategy(RetryMode.STANDARD))
            .build();
    S3Presigner presigner =
        S3Presigner.builder()
            .endpointOverride(endpoint)
            .region(Region.US_EAST_1)
            .serviceConfiguration(S3Configuration.builder().pathStyleAccessEnabled(true).build())
            .build();
    return new Server(s3, presigner, tls);
  }

  private static TrustManager[] trustOf(Path certificate) throws Exception {
    KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
    store.load(null, null);
    try (InputStream pem = Files.newInputStream(certificate)) {
      store.setCertificateEntry(
          "coffer", CertificateFactory.getInstance("X.509").generateCertificate(pem));
    }
    TrustManagerFactory trust =
        TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
    trust.init(store);
    return trust.getTrustManagers();
  }

  /** Fails unless the server refuses with this code and status. */
  static void refused(String code, int status, Steps.Step step) throws Exception {
    try {
      step.run();
    } catch (S3Exception error) {
      Steps.same(status, error.statusCode());
      // A HEAD has no body, and so no code of S3's.
      String found = codeOf(error);
      if (found != null && !found.isEmpty()) {
        Steps.same(code, found);
      }
      return;
    }
    throw new AssertionError("was not refused; expected " + code);
  }

  private static String codeOf(AwsServiceException error) {
    return error.awsErrorDetails() == null ? null : error.awsErrorDetails().errorCode();
  }

  /** Removes a bucket with all versions in it. */
  void drain(String bucket) {
    s3.listObjectVersionsPaginator(request -> request.bucket(bucket))
        .forEach(
            page -> {
              page.versions().forEach(row -> delete(bucket, row.key(), row.versionId()));
              page.deleteMarkers().forEach(row -> delete(bucket, row.key(), row.versionId()));
            });
    s3.deleteBucket(request -> request.bucket(bucket));
  }

  private void delete(String bucket, String key, String version) {
    s3.deleteObject(
        request ->
            request.bucket(bucket).key(key).versionId(version).bypassGovernanceRetention(true));
  }
}
