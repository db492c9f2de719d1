package sdk

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

func TestBuckets(t *testing.T) {
	name := bucket(t, "go-buckets", false)
	must(client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: name}))(t)
	listed := must(client.ListBuckets(ctx, &s3.ListBucketsInput{}))(t)
	same(t, true, slices.ContainsFunc(listed.Buckets, func(row types.Bucket) bool {
		return *row.Name == *name && row.CreationDate != nil
	}))
	_, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: name})
	refused(t, "BucketAlreadyOwnedByYou", http.StatusConflict, err)
	_, err = client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: aws.String("not-there")})
	refused(t, "NotFound", http.StatusNotFound, err)
	put(t, name, "a", nil)
	_, err = client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: name})
	refused(t, "BucketNotEmpty", http.StatusConflict, err)
}

func TestTags(t *testing.T) {
	name := bucket(t, "go-tags", false)
	_, err := client.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: name})
	refused(t, "NoSuchTagSet", http.StatusNotFound, err)
	tags := []types.Tag{{Key: aws.String("team"), Value: aws.String("über")}}
	must(client.PutBucketTagging(ctx, &s3.PutBucketTaggingInput{
		Bucket: name, Tagging: &types.Tagging{TagSet: tags},
	}))(t)
	told := must(client.GetBucketTagging(ctx, &s3.GetBucketTaggingInput{Bucket: name}))(t)
	same(t, true, reflect.DeepEqual(tags, told.TagSet))
	must(client.DeleteBucketTagging(ctx, &s3.DeleteBucketTaggingInput{Bucket: name}))(t)
	key := aws.String("tagged")
	must(client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: name, Key: key, Tagging: aws.String("team=%C3%BCber"),
	}))(t)
	of := must(client.GetObjectTagging(ctx, &s3.GetObjectTaggingInput{Bucket: name, Key: key}))(t)
	same(t, true, reflect.DeepEqual(tags, of.TagSet))
}

func TestPolicy(t *testing.T) {
	name := bucket(t, "go-policy", false)
	_, err := client.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: name})
	refused(t, "NoSuchBucketPolicy", http.StatusNotFound, err)
	policy := `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Principal":"*",
		"Action":"s3:GetObject","Resource":"arn:aws:s3:::go-policy/private/*"}]}`
	must(client.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: name, Policy: &policy}))(t)
	told := must(client.GetBucketPolicy(ctx, &s3.GetBucketPolicyInput{Bucket: name}))(t)
	same(t, true, strings.Contains(*told.Policy, "go-policy/private/*"))
	status := must(client.GetBucketPolicyStatus(ctx, &s3.GetBucketPolicyStatusInput{Bucket: name}))(t)
	same(t, false, *status.PolicyStatus.IsPublic)
	put(t, name, "private/a", []byte("a"))
	private := &s3.GetObjectInput{Bucket: name, Key: aws.String("private/a")}
	_, err = client.GetObject(ctx, private)
	refused(t, "AccessDenied", http.StatusForbidden, err)
	must(client.DeleteBucketPolicy(ctx, &s3.DeleteBucketPolicyInput{Bucket: name}))(t)
	read(t, private)
}

func TestCors(t *testing.T) {
	name := bucket(t, "go-cors", false)
	_, err := client.GetBucketCors(ctx, &s3.GetBucketCorsInput{Bucket: name})
	refused(t, "NoSuchCORSConfiguration", http.StatusNotFound, err)
	rules := []types.CORSRule{{
		AllowedMethods: []string{"GET", "PUT"},
		AllowedOrigins: []string{"https://app.example"},
		AllowedHeaders: []string{"*"},
		ExposeHeaders:  []string{"ETag"},
		MaxAgeSeconds:  aws.Int32(60),
	}}
	must(client.PutBucketCors(ctx, &s3.PutBucketCorsInput{
		Bucket: name, CORSConfiguration: &types.CORSConfiguration{CORSRules: rules},
	}))(t)
	told := must(client.GetBucketCors(ctx, &s3.GetBucketCorsInput{Bucket: name}))(t)
	same(t, true, reflect.DeepEqual(rules, told.CORSRules))
	must(client.DeleteBucketCors(ctx, &s3.DeleteBucketCorsInput{Bucket: name}))(t)
}

func TestLifecycle(t *testing.T) {
	name := bucket(t, "go-lifecycle", false)
	asked := &s3.GetBucketLifecycleConfigurationInput{Bucket: name}
	_, err := client.GetBucketLifecycleConfiguration(ctx, asked)
	refused(t, "NoSuchLifecycleConfiguration", http.StatusNotFound, err)
	rules := []types.LifecycleRule{{
		ID:         aws.String("logs"),
		Status:     types.ExpirationStatusEnabled,
		Filter:     &types.LifecycleRuleFilter{Prefix: aws.String("logs/")},
		Expiration: &types.LifecycleExpiration{Days: aws.Int32(30)},
	}}
	must(client.PutBucketLifecycleConfiguration(ctx, &s3.PutBucketLifecycleConfigurationInput{
		Bucket: name, LifecycleConfiguration: &types.BucketLifecycleConfiguration{Rules: rules},
	}))(t)
	told := must(client.GetBucketLifecycleConfiguration(ctx, asked))(t)
	same(t, true, reflect.DeepEqual(rules, told.Rules))
	must(client.DeleteBucketLifecycle(ctx, &s3.DeleteBucketLifecycleInput{Bucket: name}))(t)
}

func TestSettings(t *testing.T) {
	name := bucket(t, "go-settings", false)
	block := must(client.GetPublicAccessBlock(ctx, &s3.GetPublicAccessBlockInput{Bucket: name}))(t)
	same(t, true, *block.PublicAccessBlockConfiguration.BlockPublicPolicy)
	asked := &s3.GetBucketOwnershipControlsInput{Bucket: name}
	owned := must(client.GetBucketOwnershipControls(ctx, asked))(t)
	same(t, types.ObjectOwnershipBucketOwnerEnforced, owned.OwnershipControls.Rules[0].ObjectOwnership)
	by := &types.ServerSideEncryptionByDefault{SSEAlgorithm: types.ServerSideEncryptionAes256}
	must(client.PutBucketEncryption(ctx, &s3.PutBucketEncryptionInput{
		Bucket: name,
		ServerSideEncryptionConfiguration: &types.ServerSideEncryptionConfiguration{
			Rules: []types.ServerSideEncryptionRule{{ApplyServerSideEncryptionByDefault: by}},
		},
	}))(t)
	put(t, name, "a", []byte("a"))
	head := must(client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: name, Key: aws.String("a")}))(t)
	same(t, types.ServerSideEncryptionAes256, head.ServerSideEncryption)
}

func TestVersions(t *testing.T) {
	name := bucket(t, "go-versions", false)
	must(client.PutBucketVersioning(ctx, &s3.PutBucketVersioningInput{
		Bucket: name,
		VersioningConfiguration: &types.VersioningConfiguration{
			Status: types.BucketVersioningStatusEnabled,
		},
	}))(t)
	key := aws.String("a")
	made := []string{}
	for _, body := range []string{"one", "two", "three"} {
		made = append([]string{*put(t, name, *key, []byte(body)).VersionId}, made...)
	}
	marker := must(client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: name, Key: key}))(t)
	same(t, true, *marker.DeleteMarker)
	_, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: name, Key: key})
	refused(t, "NoSuchKey", http.StatusNotFound, err)
	first := &s3.GetObjectInput{Bucket: name, Key: key, VersionId: &made[2]}
	same(t, "one", string(read(t, first)))
	listed := []string{}
	input := &s3.ListObjectVersionsInput{Bucket: name, MaxKeys: aws.Int32(1)}
	pages := s3.NewListObjectVersionsPaginator(client, input)
	for pages.HasMorePages() {
		page := must(pages.NextPage(ctx))(t)
		for _, row := range page.DeleteMarkers {
			listed = append(listed, *row.VersionId)
		}
		for _, row := range page.Versions {
			listed = append(listed, *row.VersionId)
		}
	}
	same(t, true, slices.Equal(append([]string{*marker.VersionId}, made...), listed))
	must(client.DeleteObject(ctx, &s3.DeleteObjectInput{
		Bucket: name, Key: key, VersionId: marker.VersionId,
	}))(t)
	same(t, "three", string(read(t, &s3.GetObjectInput{Bucket: name, Key: key})))
}

func TestLocks(t *testing.T) {
	name := bucket(t, "go-locks", true)
	rule := &types.ObjectLockRule{DefaultRetention: &types.DefaultRetention{
		Mode: types.ObjectLockRetentionModeGovernance, Days: aws.Int32(1),
	}}
	must(client.PutObjectLockConfiguration(ctx, &s3.PutObjectLockConfigurationInput{
		Bucket: name,
		ObjectLockConfiguration: &types.ObjectLockConfiguration{
			ObjectLockEnabled: types.ObjectLockEnabledEnabled, Rule: rule,
		},
	}))(t)
	asked := &s3.GetObjectLockConfigurationInput{Bucket: name}
	told := must(client.GetObjectLockConfiguration(ctx, asked))(t)
	same(t, true, reflect.DeepEqual(rule, told.ObjectLockConfiguration.Rule))
	key := aws.String("a")
	version := put(t, name, *key, []byte("a")).VersionId
	held := must(client.GetObjectRetention(ctx, &s3.GetObjectRetentionInput{
		Bucket: name, Key: key, VersionId: version,
	}))(t)
	same(t, types.ObjectLockRetentionModeGovernance, held.Retention.Mode)
	until := held.Retention.RetainUntilDate.Sub(time.Now())
	same(t, true, until > 23*time.Hour && until <= 24*time.Hour)
	hold := func(status types.ObjectLockLegalHoldStatus) {
		t.Helper()
		must(client.PutObjectLegalHold(ctx, &s3.PutObjectLegalHoldInput{
			Bucket: name, Key: key, VersionId: version,
			LegalHold: &types.ObjectLockLegalHold{Status: status},
		}))(t)
	}
	remove := func(bypass bool) error {
		_, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{
			Bucket: name, Key: key, VersionId: version, BypassGovernanceRetention: &bypass,
		})
		return err
	}
	hold(types.ObjectLockLegalHoldStatusOn)
	refused(t, "AccessDenied", http.StatusForbidden, remove(true))
	hold(types.ObjectLockLegalHoldStatusOff)
	refused(t, "AccessDenied", http.StatusForbidden, remove(false))
	done(t, remove(true))
}
