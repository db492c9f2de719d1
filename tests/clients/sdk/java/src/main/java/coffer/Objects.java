package coffer;

import static coffer.Server.BUCKET;
import static coffer.Server.refused;
import static coffer.Steps.same;
import static coffer.Steps.sameBytes;

import java.io.ByteArrayInputStream;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeSet;
import java.util.stream.Collectors;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.ChecksumAlgorithm;
import software.amazon.awssdk.services.s3.model.ChecksumMode;
import software.amazon.awssdk.services.s3.model.CompletedPart;
import software.amazon.awssdk.services.s3.model.HeadObjectResponse;
import software.amazon.awssdk.services.s3.model.ObjectIdentifier;
import software.amazon.awssdk.services.s3.model.PutObjectResponse;
import software.amazon.awssdk.services.s3.model.UploadPartResponse;

/** Objects: written, read, checked, uploaded in parts, listed. */
final class Objects {
  private static final int MIB = 1 << 20;
  private static final Random RANDOM = new Random(7);

  private final Server server;
  private final S3Client s3;

  Objects(Server server) {
    this.server = server;
    this.s3 = server.s3();
  }

  private static byte[] content(int length) {
    byte[] content = new byte[length];
    RANDOM.nextBytes(content);
    return content;
  }

  private byte[] read(String key) {
    return s3.getObjectAsBytes(of -> of.bucket(BUCKET).key(key)).asByteArray();
  }

  void objects() throws Exception {
    String key = "folder/ein Name + 100 % ü";
    byte[] body = content(70_001);
    Map<String, String> metadata = Map.of("camera-id", "7", "note", "plain words");
    PutObjectResponse put =
        s3.putObject(
            to -> to.bucket(BUCKET).key(key).metadata(metadata).contentType("text/x-test"),
            RequestBody.fromBytes(body));
    HeadObjectResponse head = s3.headObject(of -> of.bucket(BUCKET).key(key));
    same(put.eTag(), head.eTag());
    same(metadata, head.metadata());
    same("text/x-test", head.contentType());
    sameBytes(body, read(key));
    byte[] part =
        s3.getObjectAsBytes(of -> of.bucket(BUCKET).key(key).range("bytes=10-19")).asByteArray();
    sameBytes(Arrays.copyOfRange(body, 10, 20), part);
    refused("NoSuchKey", 404, () -> read("not-there"));
    refused(
        "InvalidRange",
        416,
        () -> s3.getObjectAsBytes(of -> of.bucket(BUCKET).key(key).range("bytes=999999-")));
    s3.copyObject(
        to ->
            to.sourceBucket(BUCKET).sourceKey(key).destinationBucket(BUCKET).destinationKey("copy"));
    sameBytes(body, read("copy"));
  }

  void conditions() throws Exception {
    RequestBody body = RequestBody.fromString("a");
    String etag =
        s3.putObject(to -> to.bucket(BUCKET).key("once").ifNoneMatch("*"), body).eTag();
    refused(
        "PreconditionFailed",
        412,
        () -> s3.putObject(to -> to.bucket(BUCKET).key("once").ifNoneMatch("*"), body));
    refused(
        "PreconditionFailed",
        412,
        () -> s3.putObject(to -> to.bucket(BUCKET).key("once").ifMatch("\"other\""), body));
    s3.putObject(to -> to.bucket(BUCKET).key("once").ifMatch(etag), body);
  }

  void checksums() throws Exception {
    Map<ChecksumAlgorithm, String> values = new LinkedHashMap<>();
    values.put(ChecksumAlgorithm.CRC32, "y/Q5Jg==");
    values.put(ChecksumAlgorithm.CRC32_C, "4waSgw==");
    values.put(ChecksumAlgorithm.SHA1, "98O8HYCOBHMq32eZZczDTKeuNEE=");
    values.put(ChecksumAlgorithm.SHA256, "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=");
    for (Map.Entry<ChecksumAlgorithm, String> value : values.entrySet()) {
      String key = "checked-" + value.getKey();
      s3.putObject(
          to -> to.bucket(BUCKET).key(key).checksumAlgorithm(value.getKey()),
          RequestBody.fromString("123456789"));
      HeadObjectResponse head =
          s3.headObject(of -> of.bucket(BUCKET).key(key).checksumMode(ChecksumMode.ENABLED));
      String found =
          switch (value.getKey()) {
            case CRC32 -> head.checksumCRC32();
            case CRC32_C -> head.checksumCRC32C();
            case SHA1 -> head.checksumSHA1();
            default -> head.checksumSHA256();
          };
      same(value.getValue(), found);
    }
    // Without being asked, the SDK sends a CRC32 of its own, and checks it when it reads.
    s3.putObject(to -> to.bucket(BUCKET).key("default"), RequestBody.fromString("123456789"));
    same(
        "y/Q5Jg==",
        s3.headObject(of -> of.bucket(BUCKET).key("default").checksumMode(ChecksumMode.ENABLED))
            .checksumCRC32());
    same("123456789", new String(read("default")));
    refused(
        "BadDigest",
        400,
        () ->
            s3.putObject(
                to -> to.bucket(BUCKET).key("wrong").checksumCRC32("AAAAAA=="),
                RequestBody.fromString("123456789")));
  }

  void streams() {
    byte[] body = content(300_000);
    s3.putObject(
        to -> to.bucket(BUCKET).key("stream"),
        RequestBody.fromInputStream(new ByteArrayInputStream(body), body.length));
    sameBytes(body, read("stream"));
  }

  void uploads() throws Exception {
    String key = "parts";
    byte[] first = content(5 * MIB);
    String id = s3.createMultipartUpload(to -> to.bucket(BUCKET).key(key)).uploadId();
    UploadPartResponse sent =
        s3.uploadPart(
            to -> to.bucket(BUCKET).key(key).uploadId(id).partNumber(1),
            RequestBody.fromBytes(first));
    String copied =
        s3.uploadPartCopy(
                to ->
                    to.sourceBucket(BUCKET)
                        .sourceKey("stream")
                        .copySourceRange("bytes=0-99")
                        .destinationBucket(BUCKET)
                        .destinationKey(key)
                        .uploadId(id)
                        .partNumber(2))
            .copyPartResult()
            .eTag();
    same(2, s3.listParts(of -> of.bucket(BUCKET).key(key).uploadId(id)).parts().size());
    List<CompletedPart> parts =
        List.of(
            CompletedPart.builder()
                .partNumber(1)
                .eTag(sent.eTag())
                .checksumCRC32(sent.checksumCRC32())
                .build(),
            CompletedPart.builder().partNumber(2).eTag(copied).build());
    s3.completeMultipartUpload(
        to -> to.bucket(BUCKET).key(key).uploadId(id).multipartUpload(of -> of.parts(parts)));
    byte[] whole = read(key);
    same(5 * MIB + 100, whole.length);
    sameBytes(first, Arrays.copyOf(whole, first.length));
    String other = s3.createMultipartUpload(to -> to.bucket(BUCKET).key(key)).uploadId();
    s3.abortMultipartUpload(of -> of.bucket(BUCKET).key(key).uploadId(other));
    refused(
        "NoSuchUpload",
        404,
        () -> s3.listParts(of -> of.bucket(BUCKET).key(key).uploadId(other)));
  }

  void presigned() throws Exception {
    HttpClient http = HttpClient.newBuilder().sslContext(server.tls()).build();
    Duration minute = Duration.ofMinutes(1);
    var put =
        server
            .presigner()
            .presignPutObject(
                presign ->
                    presign
                        .signatureDuration(minute)
                        .putObjectRequest(to -> to.bucket(BUCKET).key("presigned")));
    HttpRequest send =
        HttpRequest.newBuilder(put.url().toURI())
            .PUT(HttpRequest.BodyPublishers.ofString("by address"))
            .build();
    same(200, http.send(send, HttpResponse.BodyHandlers.ofString()).statusCode());
    var get =
        server
            .presigner()
            .presignGetObject(
                presign ->
                    presign
                        .signatureDuration(minute)
                        .getObjectRequest(of -> of.bucket(BUCKET).key("presigned")));
    HttpRequest fetch = HttpRequest.newBuilder(get.url().toURI()).build();
    same("by address", http.send(fetch, HttpResponse.BodyHandlers.ofString()).body());
  }

  void listing() {
    TreeSet<String> names = new TreeSet<>();
    for (int number = 0; number < 25; number++) {
      String key = "list/" + number % 5 + "/" + number + " ü";
      names.add(key);
      s3.putObject(to -> to.bucket(BUCKET).key(key), RequestBody.empty());
    }
    List<String> found =
        s3.listObjectsV2Paginator(of -> of.bucket(BUCKET).prefix("list/").maxKeys(7)).contents()
            .stream()
            .map(row -> row.key())
            .collect(Collectors.toList());
    same(List.copyOf(names), found);
    same(
        5,
        s3.listObjectsV2(of -> of.bucket(BUCKET).prefix("list/").delimiter("/"))
            .commonPrefixes()
            .size());
    List<ObjectIdentifier> all =
        names.stream().map(key -> ObjectIdentifier.builder().key(key).build()).toList();
    same(
        25,
        s3.deleteObjects(of -> of.bucket(BUCKET).delete(each -> each.objects(all)))
            .deleted()
            .size());
    same(0, s3.listObjectsV2(of -> of.bucket(BUCKET).prefix("list/")).keyCount());
  }
}
