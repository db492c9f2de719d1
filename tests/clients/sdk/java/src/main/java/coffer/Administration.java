package coffer;

import static coffer.Server.BUCKET;
import static coffer.Server.refused;
import static coffer.Steps.same;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import software.amazon.awssdk.core.sync.RequestBody;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.BucketVersioningStatus;
import software.amazon.awssdk.services.s3.model.CORSRule;
import software.amazon.awssdk.services.s3.model.DefaultRetention;
import software.amazon.awssdk.services.s3.model.LifecycleRule;
import software.amazon.awssdk.services.s3.model.ObjectLockConfiguration;
import software.amazon.awssdk.services.s3.model.ObjectLockEnabled;
import software.amazon.awssdk.services.s3.model.ObjectLockLegalHoldStatus;
import software.amazon.awssdk.services.s3.model.ObjectLockRetentionMode;
import software.amazon.awssdk.services.s3.model.ObjectOwnership;
import software.amazon.awssdk.services.s3.model.ServerSideEncryption;
import software.amazon.awssdk.services.s3.model.Tag;

/** Buckets and what is set for them. */
final class Administration {
  private final Server server;
  private final S3Client s3;

  Administration(Server server) {
    this.server = server;
    this.s3 = server.s3();
  }

  void buckets() throws Exception {
    s3.createBucket(request -> request.bucket(BUCKET));
    s3.headBucket(request -> request.bucket(BUCKET));
    same(true, s3.listBuckets().buckets().stream().anyMatch(row -> row.name().equals(BUCKET)));
    refused("BucketAlreadyOwnedByYou", 409, () -> s3.createBucket(to -> to.bucket(BUCKET)));
    refused("NoSuchBucket", 404, () -> s3.headBucket(request -> request.bucket("not-there")));
    s3.waiter().waitUntilBucketExists(request -> request.bucket(BUCKET));
  }

  void tags() throws Exception {
    refused("NoSuchTagSet", 404, () -> s3.getBucketTagging(request -> request.bucket(BUCKET)));
    Tag tag = Tag.builder().key("team").value("über").build();
    s3.putBucketTagging(request -> request.bucket(BUCKET).tagging(tags -> tags.tagSet(tag)));
    same(List.of(tag), s3.getBucketTagging(request -> request.bucket(BUCKET)).tagSet());
    s3.deleteBucketTagging(request -> request.bucket(BUCKET));
    s3.putObject(
        request -> request.bucket(BUCKET).key("tagged").tagging("team=%C3%BCber"),
        RequestBody.fromString("a"));
    same(
        List.of(tag), s3.getObjectTagging(request -> request.bucket(BUCKET).key("tagged")).tagSet());
  }

  void policy() throws Exception {
    String policy =
        """
        {"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":"*",
         "Action":"s3:GetObject","Resource":"arn:aws:s3:::java/private/*"}]}""";
    refused("NoSuchBucketPolicy", 404, () -> s3.getBucketPolicy(to -> to.bucket(BUCKET)));
    s3.putBucketPolicy(request -> request.bucket(BUCKET).policy(policy));
    same(true, s3.getBucketPolicy(to -> to.bucket(BUCKET)).policy().contains("java/private/*"));
    same(false, s3.getBucketPolicyStatus(to -> to.bucket(BUCKET)).policyStatus().isPublic());
    s3.putObject(to -> to.bucket(BUCKET).key("private/a"), RequestBody.fromString("a"));
    Steps.Step read = () -> s3.getObjectAsBytes(from -> from.bucket(BUCKET).key("private/a"));
    refused("AccessDenied", 403, read);
    s3.deleteBucketPolicy(request -> request.bucket(BUCKET));
    read.run();
  }

  void cors() throws Exception {
    CORSRule rule =
        CORSRule.builder()
            .allowedMethods("GET", "PUT")
            .allowedOrigins("https://app.example")
            .allowedHeaders("*")
            .exposeHeaders("ETag")
            .maxAgeSeconds(60)
            .build();
    refused("NoSuchCORSConfiguration", 404, () -> s3.getBucketCors(to -> to.bucket(BUCKET)));
    s3.putBucketCors(
        request -> request.bucket(BUCKET).corsConfiguration(rules -> rules.corsRules(rule)));
    same(List.of(rule), s3.getBucketCors(request -> request.bucket(BUCKET)).corsRules());
    s3.deleteBucketCors(request -> request.bucket(BUCKET));
  }

  void lifecycle() throws Exception {
    LifecycleRule rule =
        LifecycleRule.builder()
            .id("logs")
            .status("Enabled")
            .filter(filter -> filter.prefix("logs/"))
            .expiration(expiration -> expiration.days(30))
            .noncurrentVersionExpiration(days -> days.noncurrentDays(7).newerNoncurrentVersions(3))
            .abortIncompleteMultipartUpload(abort -> abort.daysAfterInitiation(2))
            .build();
    refused(
        "NoSuchLifecycleConfiguration",
        404,
        () -> s3.getBucketLifecycleConfiguration(request -> request.bucket(BUCKET)));
    s3.putBucketLifecycleConfiguration(
        request -> request.bucket(BUCKET).lifecycleConfiguration(rules -> rules.rules(rule)));
    same(
        List.of(rule),
        s3.getBucketLifecycleConfiguration(request -> request.bucket(BUCKET)).rules());
    s3.deleteBucketLifecycle(request -> request.bucket(BUCKET));
  }

  void settings() {
    same(
        true,
        s3.getPublicAccessBlock(request -> request.bucket(BUCKET))
            .publicAccessBlockConfiguration()
            .blockPublicPolicy());
    same(
        ObjectOwnership.BUCKET_OWNER_ENFORCED,
        s3.getBucketOwnershipControls(request -> request.bucket(BUCKET))
            .ownershipControls()
            .rules()
            .get(0)
            .objectOwnership());
    s3.putBucketEncryption(
        request ->
            request
                .bucket(BUCKET)
                .serverSideEncryptionConfiguration(
                    configuration ->
                        configuration.rules(
                            rule ->
                                rule.applyServerSideEncryptionByDefault(
                                    by -> by.sseAlgorithm(ServerSideEncryption.AES256)))));
    s3.putObject(to -> to.bucket(BUCKET).key("encrypted"), RequestBody.fromString("a"));
    same(
        ServerSideEncryption.AES256,
        s3.headObject(of -> of.bucket(BUCKET).key("encrypted")).serverSideEncryption());
  }

  void versions() throws Exception {
    String name = "java-versions";
    s3.createBucket(request -> request.bucket(name));
    s3.putBucketVersioning(
        request ->
            request
                .bucket(name)
                .versioningConfiguration(to -> to.status(BucketVersioningStatus.ENABLED)));
    List<String> made = new ArrayList<>();
    for (String content : List.of("one", "two", "three")) {
      made.add(
          s3.putObject(to -> to.bucket(name).key("a"), RequestBody.fromString(content))
              .versionId());
    }
    String marker = s3.deleteObject(of -> of.bucket(name).key("a")).versionId();
    refused("NoSuchKey", 404, () -> s3.getObjectAsBytes(of -> of.bucket(name).key("a")));
    same(
        "one",
        s3.getObjectAsBytes(of -> of.bucket(name).key("a").versionId(made.get(0))).asUtf8String());
    List<String> listed = new ArrayList<>();
    s3.listObjectVersionsPaginator(request -> request.bucket(name).maxKeys(1))
        .forEach(
            page -> {
              page.versions().forEach(row -> listed.add(row.versionId()));
              page.deleteMarkers().forEach(row -> listed.add(row.versionId()));
            });
    Collections.reverse(made);
    made.add(0, marker);
    same(made, listed);
    s3.deleteObject(of -> of.bucket(name).key("a").versionId(marker));
    same("three", s3.getObjectAsBytes(of -> of.bucket(name).key("a")).asUtf8String());
    server.drain(name);
  }

  void locks() throws Exception {
    String name = "java-locks";
    s3.createBucket(request -> request.bucket(name).objectLockEnabledForBucket(true));
    DefaultRetention retention =
        DefaultRetention.builder().mode(ObjectLockRetentionMode.GOVERNANCE).days(1).build();
    ObjectLockConfiguration configuration =
        ObjectLockConfiguration.builder()
            .objectLockEnabled(ObjectLockEnabled.ENABLED)
            .rule(rule -> rule.defaultRetention(retention))
            .build();
    s3.putObjectLockConfiguration(
        request -> request.bucket(name).objectLockConfiguration(configuration));
    same(
        configuration,
        s3.getObjectLockConfiguration(request -> request.bucket(name)).objectLockConfiguration());
    String version =
        s3.putObject(to -> to.bucket(name).key("a"), RequestBody.fromString("a")).versionId();
    same(
        "GOVERNANCE",
        s3.getObjectRetention(of -> of.bucket(name).key("a").versionId(version))
            .retention()
            .modeAsString());
    hold(name, version, ObjectLockLegalHoldStatus.ON);
    Steps.Step bypassing =
        () ->
            s3.deleteObject(
                of ->
                    of.bucket(name).key("a").versionId(version).bypassGovernanceRetention(true));
    refused("AccessDenied", 403, bypassing);
    hold(name, version, ObjectLockLegalHoldStatus.OFF);
    refused(
        "AccessDenied",
        403,
        () -> s3.deleteObject(of -> of.bucket(name).key("a").versionId(version)));
    bypassing.run();
    server.drain(name);
  }

  private void hold(String bucket, String version, ObjectLockLegalHoldStatus status) {
    s3.putObjectLegalHold(
        of -> of.bucket(bucket).key("a").versionId(version).legalHold(hold -> hold.status(status)));
    same(
        status,
        s3.getObjectLegalHold(of -> of.bucket(bucket).key("a").versionId(version))
            .legalHold()
            .status());
  }

  void removal() throws Exception {
    refused("BucketNotEmpty", 409, () -> s3.deleteBucket(request -> request.bucket(BUCKET)));
    server.drain(BUCKET);
    refused("NoSuchBucket", 404, () -> s3.headBucket(request -> request.bucket(BUCKET)));
  }
}
