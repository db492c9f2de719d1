// Command conformance runs the S3 tests of versitygw, another project's gateway, against the server at
// COFFER_ENDPOINT, and writes what each of them said as lines of JSON. The usual variables of AWS say who
// we are, SSL_CERT_FILE whom to trust.
//
// Usage: conformance RESULTS [TEST...]
//
// Beside their own program, this one goes on where a test panics, and leaves out what is not S3.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/versity/versitygw/tests/integration"
)

// Tests that count all buckets, and so want no others at work beside them.
var alone = []string{"ListBuckets_", "IAM_ListBuckets"}

// What tests other things than S3: two more services, and how the gateway serves websites.
var left = []string{"IAM", "S3IAM", "WebsiteHosting_"}

const workers = 8

type result struct {
	Name    string  `json:"name"`
	Error   string  `json:"error,omitempty"`
	Seconds float64 `json:"seconds"`
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: conformance RESULTS [TEST...]")
		os.Exit(2)
	}
	tests := integration.GetIntTests()
	names := os.Args[2:]
	if len(names) == 0 {
		for name := range tests {
			if !startsWithAny(name, left) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	server := integration.NewS3Conf(
		integration.WithAccess(os.Getenv("AWS_ACCESS_KEY_ID")),
		integration.WithSecret(os.Getenv("AWS_SECRET_ACCESS_KEY")),
		integration.WithRegion("us-east-1"),
		integration.WithEndpoint(os.Getenv("COFFER_ENDPOINT")),
		integration.WithPartSize(64<<20),
		integration.WithConcurrency(2),
		integration.WithVersioningEnabled(),
	)
	var results []result
	var lock sync.Mutex
	one := func(name string) {
		began := time.Now()
		err := run(tests[name], server)
		found := result{Name: name, Seconds: time.Since(began).Seconds()}
		if err != nil {
			found.Error = err.Error()
		}
		lock.Lock()
		defer lock.Unlock()
		results = append(results, found)
	}
	queue := make(chan string)
	var running sync.WaitGroup
	for _, name := range names {
		if startsWithAny(name, alone) {
			one(name)
		}
	}
	for range workers {
		running.Go(func() {
			for name := range queue {
				one(name)
			}
		})
	}
	for _, name := range names {
		if !startsWithAny(name, alone) {
			queue <- name
		}
	}
	close(queue)
	running.Wait()
	if err := write(os.Args[1], results); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func startsWithAny(name string, starts []string) bool {
	return slices.ContainsFunc(starts, func(start string) bool {
		return strings.HasPrefix(name, start)
	})
}

// run turns a panic into an error: some tests take for granted that an answer has a member.
func run(test integration.IntTest, server *integration.S3Conf) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panicked: %v", reason)
		}
	}()
	if test == nil {
		return fmt.Errorf("there is no such test")
	}
	return test(server)
}

func write(path string, results []result) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	lines := json.NewEncoder(file)
	for _, found := range results {
		if err := lines.Encode(found); err != nil {
			return err
		}
	}
	return file.Close()
}
