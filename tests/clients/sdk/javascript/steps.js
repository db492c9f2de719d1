// What applications do over the AWS SDK for JavaScript: one line `ok STEP` for each step that went
// as AWS documents it. The first that did not ends the program with status 1.
//
// COFFER_ENDPOINT and the usual variables of AWS say where and who; NODE_EXTRA_CA_CERTS whom to trust.

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createReadStream, writeFileSync } from "node:fs";
import { join } from "node:path";

import * as s3 from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { createPresignedPost } from "@aws-sdk/s3-presigned-post";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";

const MIB = 1 << 20;
const client = new s3.S3Client({
  endpoint: process.env.COFFER_ENDPOINT,
  region: "us-east-1",
  forcePathStyle: true,
  maxAttempts: 1,
});
const send = (Command, input) => client.send(new Command(input));
const Bucket = "javascript";

async function refused(code, status, promise) {
  try {
    await promise;
  } catch (error) {
    assert.equal(error.name, code, error);
    assert.equal(error.$metadata.httpStatusCode, status);
    return;
  }
  assert.fail(`was not refused; expected ${code}`);
}

async function bytesOf(answer) {
  return Buffer.from(await answer.Body.transformToByteArray());
}

async function* pagesOfVersions(name, MaxKeys) {
  let page = {};
  do {
    const { NextKeyMarker: KeyMarker, NextVersionIdMarker: VersionIdMarker } = page;
    page = await send(s3.ListObjectVersionsCommand, {
      Bucket: name, MaxKeys, KeyMarker, VersionIdMarker,
    });
    yield page;
  } while (page.IsTruncated);
}

async function drain(name) {
  const BypassGovernanceRetention = true;
  for await (const page of pagesOfVersions(name)) {
    for (const row of [...(page.Versions ?? []), ...(page.DeleteMarkers ?? [])]) {
      const { Key, VersionId } = row;
      await send(s3.DeleteObjectCommand, { Bucket: name, Key, VersionId, BypassGovernanceRetention });
    }
  }
  await send(s3.DeleteBucketCommand, { Bucket: name });
}

const steps = {
  async buckets() {
    await send(s3.CreateBucketCommand, { Bucket });
    await send(s3.HeadBucketCommand, { Bucket });
    const { Buckets } = await send(s3.ListBucketsCommand, {});
    assert.ok(Buckets.some((row) => row.Name === Bucket && row.CreationDate instanceof Date));
    await refused("BucketAlreadyOwnedByYou", 409, send(s3.CreateBucketCommand, { Bucket }));
    await refused("NotFound", 404, send(s3.HeadBucketCommand, { Bucket: "not-there" }));
    await s3.waitUntilBucketExists({ client, maxWaitTime: 20 }, { Bucket });
  },

  async tags() {
    const TagSet = [{ Key: "team", Value: "über" }, { Key: "empty", Value: "" }];
    await refused("NoSuchTagSet", 404, send(s3.GetBucketTaggingCommand, { Bucket }));
    await send(s3.PutBucketTaggingCommand, { Bucket, Tagging: { TagSet } });
    const byKey = (a, b) => a.Key.localeCompare(b.Key);
    const told = await send(s3.GetBucketTaggingCommand, { Bucket });
    assert.deepEqual(told.TagSet.sort(byKey), [...TagSet].sort(byKey));
    await send(s3.DeleteBucketTaggingCommand, { Bucket });
    await send(s3.PutObjectCommand, { Bucket, Key: "tagged", Body: "a", Tagging: "a=1&b=%2B" });
    const ofObject = await send(s3.GetObjectTaggingCommand, { Bucket, Key: "tagged" });
    assert.deepEqual(ofObject.TagSet, [{ Key: "a", Value: "1" }, { Key: "b", Value: "+" }]);
  },

  async policy() {
    const Resource = `arn:aws:s3:::${Bucket}/private/*`;
    const statement = { Effect: "Deny", Principal: "*", Action: "s3:GetObject", Resource };
    const Policy = JSON.stringify({ Version: "2012-10-17", Statement: [statement] });
    await refused("NoSuchBucketPolicy", 404, send(s3.GetBucketPolicyCommand, { Bucket }));
    await send(s3.PutBucketPolicyCommand, { Bucket, Policy });
    const told = await send(s3.GetBucketPolicyCommand, { Bucket });
    assert.deepEqual(JSON.parse(told.Policy).Statement[0].Resource, Resource);
    const { PolicyStatus } = await send(s3.GetBucketPolicyStatusCommand, { Bucket });
    assert.equal(PolicyStatus.IsPublic, false);
    await send(s3.PutObjectCommand, { Bucket, Key: "private/a", Body: "a" });
    await refused("AccessDenied", 403, send(s3.GetObjectCommand, { Bucket, Key: "private/a" }));
    await send(s3.DeleteBucketPolicyCommand, { Bucket });
    await send(s3.GetObjectCommand, { Bucket, Key: "private/a" });
  },

  async cors() {
    const CORSRules = [
      {
        AllowedMethods: ["GET", "PUT"],
        AllowedOrigins: ["https://app.example"],
        AllowedHeaders: ["*"],
        ExposeHeaders: ["ETag"],
        MaxAgeSeconds: 60,
      },
    ];
    await refused("NoSuchCORSConfiguration", 404, send(s3.GetBucketCorsCommand, { Bucket }));
    await send(s3.PutBucketCorsCommand, { Bucket, CORSConfiguration: { CORSRules } });
    assert.deepEqual((await send(s3.GetBucketCorsCommand, { Bucket })).CORSRules, CORSRules);
    await send(s3.DeleteBucketCorsCommand, { Bucket });
  },

  async lifecycle() {
    const rule = {
      ID: "logs",
      Status: "Enabled",
      Filter: { And: { Prefix: "logs/", Tags: [{ Key: "keep", Value: "no" }] } },
      Expiration: { Days: 30 },
      NoncurrentVersionExpiration: { NoncurrentDays: 7, NewerNoncurrentVersions: 3 },
    };
    const Rules = [rule];
    const absent = send(s3.GetBucketLifecycleConfigurationCommand, { Bucket });
    await refused("NoSuchLifecycleConfiguration", 404, absent);
    await send(s3.PutBucketLifecycleConfigurationCommand, {
      Bucket,
      LifecycleConfiguration: { Rules },
    });
    const told = await send(s3.GetBucketLifecycleConfigurationCommand, { Bucket });
    assert.deepEqual(told.Rules, Rules);
    await send(s3.DeleteBucketLifecycleCommand, { Bucket });
  },

  async settings() {
    const { PublicAccessBlockConfiguration } = await send(s3.GetPublicAccessBlockCommand, { Bucket });
    assert.equal(PublicAccessBlockConfiguration.BlockPublicPolicy, true);
    const { OwnershipControls } = await send(s3.GetBucketOwnershipControlsCommand, { Bucket });
    assert.equal(OwnershipControls.Rules[0].ObjectOwnership, "BucketOwnerEnforced");
    const rule = { ApplyServerSideEncryptionByDefault: { SSEAlgorithm: "AES256" } };
    const ServerSideEncryptionConfiguration = { Rules: [rule] };
    await send(s3.PutBucketEncryptionCommand, { Bucket, ServerSideEncryptionConfiguration });
    await send(s3.PutObjectCommand, { Bucket, Key: "encrypted", Body: "a" });
    const head = await send(s3.HeadObjectCommand, { Bucket, Key: "encrypted" });
    assert.equal(head.ServerSideEncryption, "AES256");
  },

  async objects() {
    const Metadata = { "camera-id": "7", note: "plain words" };
    const Body = randomBytes(70_001);
    const Key = "folder/ein Name + 100 % ü";
    const put = await send(s3.PutObjectCommand, {
      Bucket, Key, Body, Metadata, ContentType: "text/x-test", CacheControl: "no-cache",
    });
    const got = await send(s3.GetObjectCommand, { Bucket, Key });
    assert.deepEqual(await bytesOf(got), Body);
    assert.deepEqual(got.Metadata, Metadata);
    assert.equal(got.ETag, put.ETag);
    assert.equal(got.ContentType, "text/x-test");
    const Range = "bytes=10-19";
    const part = await send(s3.GetObjectCommand, { Bucket, Key, Range });
    assert.deepEqual(await bytesOf(part), Body.subarray(10, 20));
    assert.equal(part.ContentRange, `bytes 10-19/${Body.length}`);
    await refused("NoSuchKey", 404, send(s3.GetObjectCommand, { Bucket, Key: "not-there" }));
    await refused("NotFound", 404, send(s3.HeadObjectCommand, { Bucket, Key: "not-there" }));
    const beyond = send(s3.GetObjectCommand, { Bucket, Key, Range: "bytes=999999-" });
    await refused("InvalidRange", 416, beyond);
    const CopySource = encodeURIComponent(`${Bucket}/${Key}`);
    await send(s3.CopyObjectCommand, { Bucket, Key: "copy", CopySource });
    assert.deepEqual(await bytesOf(await send(s3.GetObjectCommand, { Bucket, Key: "copy" })), Body);
  },

  async conditions() {
    const Key = "once";
    const { ETag } = await send(s3.PutObjectCommand, { Bucket, Key, Body: "a", IfNoneMatch: "*" });
    const again = send(s3.PutObjectCommand, { Bucket, Key, Body: "b", IfNoneMatch: "*" });
    await refused("PreconditionFailed", 412, again);
    const other = send(s3.PutObjectCommand, { Bucket, Key, Body: "b", IfMatch: '"other"' });
    await refused("PreconditionFailed", 412, other);
    await send(s3.PutObjectCommand, { Bucket, Key, Body: "b", IfMatch: ETag });
    const { ETag: IfNoneMatch } = await send(s3.HeadObjectCommand, { Bucket, Key });
    // A HEAD tells no code.
    const same = await send(s3.HeadObjectCommand, { Bucket, Key, IfNoneMatch }).catch((error) => error);
    assert.equal(same.$metadata.httpStatusCode, 304);
  },

  async checksums() {
    const Body = "123456789";
    const values = {
      CRC32: "y/Q5Jg==",
      CRC32C: "4waSgw==",
      CRC64NVME: "rosUhgp5mIg=",
      SHA1: "98O8HYCOBHMq32eZZczDTKeuNEE=",
      SHA256: "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=",
    };
    // Without being asked, the SDK sends a CRC32 of its own.
    await send(s3.PutObjectCommand, { Bucket, Key: "default", Body });
    const ChecksumMode = "ENABLED";
    const told = await send(s3.HeadObjectCommand, { Bucket, Key: "default", ChecksumMode });
    assert.equal(told.ChecksumCRC32, values.CRC32);
    assert.equal(told.ChecksumType, "FULL_OBJECT");
    for (const ChecksumAlgorithm of Object.keys(values)) {
      const Key = `checked-${ChecksumAlgorithm}`;
      const put = await send(s3.PutObjectCommand, { Bucket, Key, Body, ChecksumAlgorithm });
      const head = await send(s3.HeadObjectCommand, { Bucket, Key, ChecksumMode });
      const member = `Checksum${ChecksumAlgorithm}`;
      assert.equal(put[member], values[ChecksumAlgorithm]);
      assert.equal(head[member], values[ChecksumAlgorithm]);
      // What arrives is checked by the SDK.
      const got = await send(s3.GetObjectCommand, { Bucket, Key, ChecksumMode });
      assert.equal(await got.Body.transformToString(), Body);
    }
    const wrong = send(s3.PutObjectCommand, { Bucket, Key: "wrong", Body, ChecksumCRC32: "AAAAAA==" });
    await refused("BadDigest", 400, wrong);
    await refused("NotFound", 404, send(s3.HeadObjectCommand, { Bucket, Key: "wrong" }));
    const attributes = await send(s3.GetObjectAttributesCommand, {
      Bucket, Key: "default", ObjectAttributes: ["Checksum", "ObjectSize", "ETag"],
    });
    assert.equal(attributes.Checksum.ChecksumCRC32, values.CRC32);
    assert.equal(attributes.ObjectSize, Body.length);
  },

  async streams() {
    // A stream of known length goes in chunks, with its checksum behind it.
    const body = randomBytes(300_000);
    const file = join(process.env.COFFER_FOLDER, "stream");
    writeFileSync(file, body);
    await send(s3.PutObjectCommand, {
      Bucket, Key: "stream", Body: createReadStream(file), ContentLength: body.length,
    });
    const got = await send(s3.GetObjectCommand, { Bucket, Key: "stream", ChecksumMode: "ENABLED" });
    assert.deepEqual(await bytesOf(got), body);
    assert.ok(got.ChecksumCRC32);
  },

  async parts() {
    const body = randomBytes(12 * MIB + 17);
    const params = { Bucket, Key: "parts", Body: body, Metadata: { made: "in-parts" } };
    const progress = [];
    const upload = new Upload({ client, params, partSize: 5 * MIB, queueSize: 3 });
    upload.on("httpUploadProgress", ({ loaded }) => progress.push(loaded));
    const done = await upload.done();
    assert.equal(Math.max(...progress), body.length);
    const got = await send(s3.GetObjectCommand, { Bucket, Key: "parts" });
    assert.deepEqual(await bytesOf(got), body);
    assert.equal(got.ETag, done.ETag);
    assert.equal(got.Metadata.made, "in-parts");
    const second = await send(s3.HeadObjectCommand, { Bucket, Key: "parts", PartNumber: 2 });
    assert.equal(second.ContentLength, 5 * MIB);
    assert.equal(second.PartsCount, 3);
  },

  async uploads() {
    const Key = "by-hand";
    const { UploadId } = await send(s3.CreateMultipartUploadCommand, { Bucket, Key });
    const where = { Bucket, Key, UploadId };
    const first = randomBytes(5 * MIB);
    const sent = await send(s3.UploadPartCommand, { ...where, PartNumber: 1, Body: first });
    const CopySource = `${Bucket}/stream`;
    const copied = await send(s3.UploadPartCopyCommand, {
      ...where, PartNumber: 2, CopySource, CopySourceRange: "bytes=0-99",
    });
    const listed = await send(s3.ListPartsCommand, where);
    assert.deepEqual(listed.Parts.map((part) => part.Size), [5 * MIB, 100]);
    const open = await send(s3.ListMultipartUploadsCommand, { Bucket, Prefix: Key });
    assert.equal(open.Uploads[0].UploadId, UploadId);
    const Parts = [
      { PartNumber: 1, ETag: sent.ETag, ChecksumCRC32: sent.ChecksumCRC32 },
      { PartNumber: 2, ETag: copied.CopyPartResult.ETag },
    ];
    const turned = { ...where, MultipartUpload: { Parts: [...Parts].reverse() } };
    await refused("InvalidPartOrder", 400, send(s3.CompleteMultipartUploadCommand, turned));
    await send(s3.CompleteMultipartUploadCommand, { ...where, MultipartUpload: { Parts } });
    const head = await send(s3.HeadObjectCommand, { Bucket, Key });
    assert.equal(head.ContentLength, 5 * MIB + 100);
    const other = await send(s3.CreateMultipartUploadCommand, { Bucket, Key });
    await send(s3.AbortMultipartUploadCommand, { Bucket, Key, UploadId: other.UploadId });
    const gone = send(s3.ListPartsCommand, { Bucket, Key, UploadId: other.UploadId });
    await refused("NoSuchUpload", 404, gone);
  },

  async presigned() {
    const Key = "presigned";
    const put = new s3.PutObjectCommand({ Bucket, Key, ContentType: "text/plain" });
    const to = await getSignedUrl(client, put, { expiresIn: 60 });
    const headers = { "content-type": "text/plain" };
    const sent = await fetch(to, { method: "PUT", body: "by address", headers });
    assert.equal(sent.status, 200, await sent.text());
    const from = await getSignedUrl(client, new s3.GetObjectCommand({ Bucket, Key }), { expiresIn: 60 });
    assert.equal(await (await fetch(from)).text(), "by address");
    assert.equal((await fetch(from.replace("Signature=", "Signature=0"))).status, 403);

    const { url, fields } = await createPresignedPost(client, {
      Bucket,
      Key: "form/${filename}",
      Conditions: [["content-length-range", 1, 20], ["starts-with", "$Content-Type", "text/"]],
      Fields: { "Content-Type": "text/plain", success_action_status: "201" },
      Expires: 60,
    });
    const posted = async (content) => {
      const form = new FormData();
      for (const [name, value] of Object.entries(fields)) form.append(name, value);
      form.append("file", new Blob([content]), "a.txt");
      return fetch(url, { method: "POST", body: form });
    };
    assert.equal((await posted("from a form")).status, 201);
    assert.equal((await posted("x".repeat(21))).status, 400);
    const got = await send(s3.GetObjectCommand, { Bucket, Key: "form/a.txt" });
    assert.equal(await got.Body.transformToString(), "from a form");
  },

  async listing() {
    const names = Array.from({ length: 25 }, (_, number) => `list/${number % 5}/${number} ü`);
    await Promise.all(names.map((Key) => send(s3.PutObjectCommand, { Bucket, Key, Body: "" })));
    const found = [];
    const paging = { client, pageSize: 7 };
    for await (const page of s3.paginateListObjectsV2(paging, { Bucket, Prefix: "list/" })) {
      found.push(...page.Contents.map((row) => row.Key));
    }
    assert.deepEqual(found.sort(), [...names].sort());
    const grouped = await send(s3.ListObjectsV2Command, { Bucket, Prefix: "list/", Delimiter: "/" });
    assert.deepEqual(grouped.CommonPrefixes.map((row) => row.Prefix), [0, 1, 2, 3, 4].map((n) => `list/${n}/`));
    const Objects = names.map((Key) => ({ Key }));
    const deleted = await send(s3.DeleteObjectsCommand, { Bucket, Delete: { Objects } });
    assert.equal(deleted.Deleted.length, 25);
    assert.equal((await send(s3.ListObjectsV2Command, { Bucket, Prefix: "list/" })).KeyCount, 0);
  },

  async versions() {
    const name = "javascript-versions";
    await send(s3.CreateBucketCommand, { Bucket: name });
    const VersioningConfiguration = { Status: "Enabled" };
    await send(s3.PutBucketVersioningCommand, { Bucket: name, VersioningConfiguration });
    const told = await send(s3.GetBucketVersioningCommand, { Bucket: name });
    assert.equal(told.Status, "Enabled");
    const where = { Bucket: name, Key: "a" };
    const made = [];
    for (const Body of ["one", "two", "three"]) {
      made.push((await send(s3.PutObjectCommand, { ...where, Body })).VersionId);
    }
    const marker = await send(s3.DeleteObjectCommand, where);
    assert.equal(marker.DeleteMarker, true);
    await refused("NoSuchKey", 404, send(s3.GetObjectCommand, where));
    const one = await send(s3.GetObjectCommand, { ...where, VersionId: made[0] });
    assert.equal(await one.Body.transformToString(), "one");
    const listed = [];
    for await (const page of pagesOfVersions(name, 1)) {
      listed.push(...[...(page.Versions ?? []), ...(page.DeleteMarkers ?? [])].map((row) => row.VersionId));
    }
    assert.deepEqual(listed, [marker.VersionId, ...made.reverse()]);
    await send(s3.DeleteObjectCommand, { ...where, VersionId: marker.VersionId });
    assert.equal(await (await send(s3.GetObjectCommand, where)).Body.transformToString(), "three");
    await drain(name);
  },

  async locks() {
    const name = "javascript-locks";
    await send(s3.CreateBucketCommand, { Bucket: name, ObjectLockEnabledForBucket: true });
    const DefaultRetention = { Mode: "GOVERNANCE", Days: 1 };
    const ObjectLockConfiguration = { ObjectLockEnabled: "Enabled", Rule: { DefaultRetention } };
    await send(s3.PutObjectLockConfigurationCommand, { Bucket: name, ObjectLockConfiguration });
    const told = await send(s3.GetObjectLockConfigurationCommand, { Bucket: name });
    assert.deepEqual(told.ObjectLockConfiguration, ObjectLockConfiguration);
    const put = await send(s3.PutObjectCommand, { Bucket: name, Key: "a", Body: "a" });
    const where = { Bucket: name, Key: "a", VersionId: put.VersionId };
    const { Retention } = await send(s3.GetObjectRetentionCommand, where);
    assert.equal(Retention.Mode, "GOVERNANCE");
    await send(s3.PutObjectLegalHoldCommand, { ...where, LegalHold: { Status: "ON" } });
    const { LegalHold } = await send(s3.GetObjectLegalHoldCommand, where);
    assert.equal(LegalHold.Status, "ON");
    const BypassGovernanceRetention = true;
    const held = send(s3.DeleteObjectCommand, { ...where, BypassGovernanceRetention });
    await refused("AccessDenied", 403, held);
    await send(s3.PutObjectLegalHoldCommand, { ...where, LegalHold: { Status: "OFF" } });
    await refused("AccessDenied", 403, send(s3.DeleteObjectCommand, where));
    await send(s3.DeleteObjectCommand, { ...where, BypassGovernanceRetention });
    await drain(name);
  },

  async removal() {
    await refused("BucketNotEmpty", 409, send(s3.DeleteBucketCommand, { Bucket }));
    await drain(Bucket);
    await refused("NotFound", 404, send(s3.HeadBucketCommand, { Bucket }));
  },
};

for (const [name, step] of Object.entries(steps)) {
  try {
    await step();
    console.log(`ok ${name}`);
  } catch (error) {
    console.log(`failed ${name}`);
    console.error(error);
    process.exit(1);
  }
}
