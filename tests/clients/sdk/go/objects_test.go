package sdk

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

func TestObjects(t *testing.T) {
	name := bucket(t, "go-objects", false)
	key := aws.String("folder/ein Name + 100 % ü")
	body := content(70_001)
	metadata := map[string]string{"camera-id": "7", "note": "plain words"}
	sent := must(client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: name, Key: key, Body: bytes.NewReader(body), Metadata: metadata,
		ContentType: aws.String("text/x-test"),
	}))(t)
	head := must(client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: name, Key: key}))(t)
	same(t, *sent.ETag, *head.ETag)
	same(t, "text/x-test", *head.ContentType)
	same(t, true, reflect.DeepEqual(metadata, head.Metadata))
	whole := &s3.GetObjectInput{Bucket: name, Key: key}
	same(t, true, bytes.Equal(body, read(t, whole)))
	part := &s3.GetObjectInput{Bucket: name, Key: key, Range: aws.String("bytes=10-19")}
	same(t, true, bytes.Equal(body[10:20], read(t, part)))
	_, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: name, Key: aws.String("not-there")})
	refused(t, "NoSuchKey", http.StatusNotFound, err)
	beyond := &s3.GetObjectInput{Bucket: name, Key: key, Range: aws.String("bytes=999999-")}
	_, err = client.GetObject(ctx, beyond)
	refused(t, "InvalidRange", http.StatusRequestedRangeNotSatisfiable, err)
	put(t, name, "plain", body)
	must(client.CopyObject(ctx, &s3.CopyObjectInput{
		Bucket: name, Key: aws.String("copy"), CopySource: aws.String(*name + "/plain"),
	}))(t)
	copied := read(t, &s3.GetObjectInput{Bucket: name, Key: aws.String("copy")})
	same(t, true, bytes.Equal(body, copied))
}

func TestConditions(t *testing.T) {
	name := bucket(t, "go-conditions", false)
	write := func(match, noneMatch *string) (*s3.PutObjectOutput, error) {
		return client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: name, Key: aws.String("once"), IfMatch: match, IfNoneMatch: noneMatch,
		})
	}
	first := must(write(nil, aws.String("*")))(t)
	_, err := write(nil, aws.String("*"))
	refused(t, "PreconditionFailed", http.StatusPreconditionFailed, err)
	_, err = write(aws.String(`"other"`), nil)
	refused(t, "PreconditionFailed", http.StatusPreconditionFailed, err)
	must(write(first.ETag, nil))(t)
}

func TestChecksums(t *testing.T) {
	name := bucket(t, "go-checksums", false)
	key := aws.String("a")
	check := func() *s3.HeadObjectOutput {
		return must(client.HeadObject(ctx, &s3.HeadObjectInput{
			Bucket: name, Key: key, ChecksumMode: types.ChecksumModeEnabled,
		}))(t)
	}
	for _, value := range []struct {
		algorithm types.ChecksumAlgorithm
		expected  string
		of        func(*s3.HeadObjectOutput) *string
	}{
		// Without being asked, the SDK sends a CRC32 of its own.
		{"", "y/Q5Jg==", func(head *s3.HeadObjectOutput) *string { return head.ChecksumCRC32 }},
		{"CRC32C", "4waSgw==", func(head *s3.HeadObjectOutput) *string { return head.ChecksumCRC32C }},
		{"CRC64NVME", "rosUhgp5mIg=", func(head *s3.HeadObjectOutput) *string {
			return head.ChecksumCRC64NVME
		}},
		{"SHA1", "98O8HYCOBHMq32eZZczDTKeuNEE=", func(head *s3.HeadObjectOutput) *string {
			return head.ChecksumSHA1
		}},
		{"SHA256", "FeKw08M4keuw8e9gnsQZQgwg4yDOlMZfvIwzEkSOsiU=",
			func(head *s3.HeadObjectOutput) *string { return head.ChecksumSHA256 }},
	} {
		must(client.PutObject(ctx, &s3.PutObjectInput{
			Bucket: name, Key: key, Body: strings.NewReader("123456789"),
			ChecksumAlgorithm: value.algorithm,
		}))(t)
		same(t, value.expected, aws.ToString(value.of(check())))
		same(t, "123456789", string(read(t, &s3.GetObjectInput{
			Bucket: name, Key: key, ChecksumMode: types.ChecksumModeEnabled,
		})))
	}
	_, err := client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: name, Key: key, Body: strings.NewReader("123456789"),
		ChecksumCRC32: aws.String("AAAAAA=="),
	})
	refused(t, "BadDigest", http.StatusBadRequest, err)
}

// A body that can't be read twice goes in chunks, with its checksum behind it.
func TestStreams(t *testing.T) {
	name := bucket(t, "go-streams", false)
	body := content(300_000)
	must(client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: name, Key: aws.String("a"), ContentLength: aws.Int64(int64(len(body))),
		Body: struct{ io.Reader }{bytes.NewReader(body)},
	}))(t)
	same(t, true, bytes.Equal(body, read(t, &s3.GetObjectInput{Bucket: name, Key: aws.String("a")})))
	// A coding of the object's own goes in a header beside the one that says so.
	must(client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: name, Key: aws.String("coded"), ContentLength: aws.Int64(int64(len(body))),
		Body:            struct{ io.Reader }{bytes.NewReader(body)},
		ContentEncoding: aws.String("zstd"), CacheControl: aws.String("no-cache"),
	}))(t)
	head := must(client.HeadObject(ctx, &s3.HeadObjectInput{
		Bucket: name, Key: aws.String("coded"),
	}))(t)
	same(t, "zstd", *head.ContentEncoding)
	same(t, "no-cache", *head.CacheControl)
}

func TestParts(t *testing.T) {
	name := bucket(t, "go-parts", false)
	body := content(20*mib + 17)
	transfers := transfermanager.New(client, func(options *transfermanager.Options) {
		options.PartSizeBytes = 8 * mib
		options.Concurrency = 3
	})
	must(transfers.UploadObject(ctx, &transfermanager.UploadObjectInput{
		Bucket: name, Key: aws.String("parts"), Body: bytes.NewReader(body),
	}))(t)
	got := must(transfers.GetObject(ctx, &transfermanager.GetObjectInput{
		Bucket: name, Key: aws.String("parts"),
	}))(t)
	same(t, true, bytes.Equal(body, must(io.ReadAll(got.Body))(t)))
	second := must(client.HeadObject(ctx, &s3.HeadObjectInput{
		Bucket: name, Key: aws.String("parts"), PartNumber: aws.Int32(2),
	}))(t)
	same(t, 8*mib, *second.ContentLength)
	same(t, 3, *second.PartsCount)
}

func TestUploads(t *testing.T) {
	name := bucket(t, "go-uploads", false)
	key := aws.String("by-hand")
	start := func() *string {
		t.Helper()
		input := &s3.CreateMultipartUploadInput{Bucket: name, Key: key}
		return must(client.CreateMultipartUpload(ctx, input))(t).UploadId
	}
	id := start()
	sent := must(client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: name, Key: key, UploadId: id, PartNumber: aws.Int32(1),
		Body: bytes.NewReader(content(5 * mib)),
	}))(t)
	put(t, name, "source", content(1000))
	copied := must(client.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
		Bucket: name, Key: key, UploadId: id, PartNumber: aws.Int32(2),
		CopySource: aws.String(*name + "/source"), CopySourceRange: aws.String("bytes=0-99"),
	}))(t)
	listed := must(client.ListParts(ctx, &s3.ListPartsInput{Bucket: name, Key: key, UploadId: id}))(t)
	same(t, 2, len(listed.Parts))
	parts := []types.CompletedPart{
		{PartNumber: aws.Int32(1), ETag: sent.ETag, ChecksumCRC32: sent.ChecksumCRC32},
		{PartNumber: aws.Int32(2), ETag: copied.CopyPartResult.ETag},
	}
	complete := func(parts []types.CompletedPart) error {
		_, err := client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
			Bucket: name, Key: key, UploadId: id,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
		})
		return err
	}
	turned := slices.Clone(parts)
	slices.Reverse(turned)
	refused(t, "InvalidPartOrder", http.StatusBadRequest, complete(turned))
	done(t, complete(parts))
	head := must(client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: name, Key: key}))(t)
	same(t, 5*mib+100, *head.ContentLength)
	other := start()
	must(client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{
		Bucket: name, Key: key, UploadId: other,
	}))(t)
	_, err := client.ListParts(ctx, &s3.ListPartsInput{Bucket: name, Key: key, UploadId: other})
	refused(t, "NoSuchUpload", http.StatusNotFound, err)
}

func TestPresigned(t *testing.T) {
	name := bucket(t, "go-presigned", false)
	key := aws.String("presigned")
	presigner := s3.NewPresignClient(client, s3.WithPresignExpires(time.Minute))
	to := must(presigner.PresignPutObject(ctx, &s3.PutObjectInput{Bucket: name, Key: key}))(t)
	request := must(http.NewRequest(to.Method, to.URL, strings.NewReader("by address")))(t)
	request.Header = to.SignedHeader
	same(t, http.StatusOK, answered(t, must(web.Do(request))(t), nil))
	from := must(presigner.PresignGetObject(ctx, &s3.GetObjectInput{Bucket: name, Key: key}))(t)
	same(t, http.StatusOK, answered(t, must(web.Get(from.URL))(t), []byte("by address")))
	changed := strings.Replace(from.URL, "Signature=", "Signature=0", 1)
	same(t, http.StatusForbidden, answered(t, must(web.Get(changed))(t), nil))

	form := must(presigner.PresignPostObject(ctx, &s3.PutObjectInput{
		Bucket: name, Key: aws.String("form"),
	}, func(options *s3.PresignPostOptions) {
		options.Conditions = []any{[]any{"content-length-range", 1, 20}}
	}))(t)
	post := func(content string) int {
		body := new(bytes.Buffer)
		fields := multipart.NewWriter(body)
		for field, value := range form.Values {
			done(t, fields.WriteField(field, value))
		}
		file := must(fields.CreateFormFile("file", "a.txt"))(t)
		must(io.WriteString(file, content))(t)
		done(t, fields.Close())
		return answered(t, must(web.Post(form.URL, fields.FormDataContentType(), body))(t), nil)
	}
	same(t, http.StatusNoContent, post("from a form"))
	same(t, http.StatusBadRequest, post(strings.Repeat("x", 21)))
	stored := read(t, &s3.GetObjectInput{Bucket: name, Key: aws.String("form")})
	same(t, "from a form", string(stored))
}

// answered gives the status of an answer, having read its body and compared it if one is expected.
func answered(t *testing.T, answer *http.Response, expected []byte) int {
	t.Helper()
	defer answer.Body.Close()
	body := must(io.ReadAll(answer.Body))(t)
	if expected != nil && !bytes.Equal(expected, body) {
		t.Fatalf("expected %q, found %q", expected, body)
	}
	return answer.StatusCode
}

func TestListing(t *testing.T) {
	name := bucket(t, "go-listing", false)
	names := []string{}
	for number := range 25 {
		names = append(names, fmt.Sprintf("list/%d/%d ü", number%5, number))
		put(t, name, names[number], nil)
	}
	slices.Sort(names)
	found := []string{}
	pages := s3.NewListObjectsV2Paginator(client, &s3.ListObjectsV2Input{
		Bucket: name, Prefix: aws.String("list/"), MaxKeys: aws.Int32(7),
	})
	for pages.HasMorePages() {
		for _, row := range must(pages.NextPage(ctx))(t).Contents {
			found = append(found, *row.Key)
		}
	}
	same(t, true, slices.Equal(names, found))
	grouped := must(client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
		Bucket: name, Prefix: aws.String("list/"), Delimiter: aws.String("/"),
	}))(t)
	same(t, 5, len(grouped.CommonPrefixes))
	objects := []types.ObjectIdentifier{}
	for _, key := range names {
		objects = append(objects, types.ObjectIdentifier{Key: aws.String(key)})
	}
	deleted := must(client.DeleteObjects(ctx, &s3.DeleteObjectsInput{
		Bucket: name, Delete: &types.Delete{Objects: objects},
	}))(t)
	same(t, 25, len(deleted.Deleted))
	left := must(client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: name}))(t)
	same(t, 0, *left.KeyCount)
}
