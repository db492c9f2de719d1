// Package sdk does over the AWS SDK for Go what applications do, against a server of coffer.
//
// COFFER_ENDPOINT and COFFER_CA say where the server is and by which authority it is known, the usual
// variables of AWS who we are.
package sdk

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

const mib = 1 << 20

var (
	ctx    = context.Background()
	trust  = x509.NewCertPool()
	web    = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}}}
	client *s3.Client
)

func TestMain(tests *testing.M) {
	pem, err := os.ReadFile(os.Getenv("COFFER_CA"))
	if err != nil || !trust.AppendCertsFromPEM(pem) {
		panic("COFFER_CA names no certificate")
	}
	keys := credentials.NewStaticCredentialsProvider(
		os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), "")
	client = s3.New(s3.Options{
		BaseEndpoint:     aws.String(os.Getenv("COFFER_ENDPOINT")),
		Region:           "us-east-1",
		UsePathStyle:     true,
		Credentials:      keys,
		HTTPClient:       web,
		RetryMaxAttempts: 1,
		// As a configuration that is loaded has them.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
	})
	os.Exit(tests.Run())
}

// done fails the test if there is an error.
func done(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must gives the answer, or fails the test.
func must[T any](answer T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		done(t, err)
		return answer
	}
}

func same[T comparable](t *testing.T, expected, found T) {
	t.Helper()
	if expected != found {
		t.Fatalf("expected %v, found %v", expected, found)
	}
}

// refused fails the test unless the server refused with this code and status.
func refused(t *testing.T, code string, status int, err error) {
	t.Helper()
	var said smithy.APIError
	var response *awshttp.ResponseError
	if !errors.As(err, &said) || !errors.As(err, &response) {
		t.Fatalf("expected %s, found %v", code, err)
	}
	same(t, code, said.ErrorCode())
	same(t, status, response.HTTPStatusCode())
}

func content(length int) []byte {
	content := make([]byte, length)
	source := rand.NewChaCha8([32]byte{7})
	_, _ = source.Read(content)
	return content
}

// bucket makes a bucket, which is removed with all its versions when the test ends.
func bucket(t *testing.T, name string, locked bool) *string {
	t.Helper()
	must(client.CreateBucket(ctx, &s3.CreateBucketInput{
		Bucket: &name, ObjectLockEnabledForBucket: &locked,
	}))(t)
	t.Cleanup(func() { drain(t, &name) })
	return &name
}

func drain(t *testing.T, bucket *string) {
	t.Helper()
	remove := func(key, version *string) {
		must(client.DeleteObject(ctx, &s3.DeleteObjectInput{
			Bucket: bucket, Key: key, VersionId: version, BypassGovernanceRetention: aws.Bool(true),
		}))(t)
	}
	pages := s3.NewListObjectVersionsPaginator(client, &s3.ListObjectVersionsInput{Bucket: bucket})
	for pages.HasMorePages() {
		page := must(pages.NextPage(ctx))(t)
		for _, row := range page.Versions {
			remove(row.Key, row.VersionId)
		}
		for _, row := range page.DeleteMarkers {
			remove(row.Key, row.VersionId)
		}
	}
	must(client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: bucket}))(t)
}

func put(t *testing.T, bucket *string, key string, body []byte) *s3.PutObjectOutput {
	t.Helper()
	input := &s3.PutObjectInput{Bucket: bucket, Key: &key, Body: bytes.NewReader(body)}
	return must(client.PutObject(ctx, input))(t)
}

func read(t *testing.T, input *s3.GetObjectInput) []byte {
	t.Helper()
	answer := must(client.GetObject(ctx, input))(t)
	defer answer.Body.Close()
	return must(io.ReadAll(answer.Body))(t)
}
