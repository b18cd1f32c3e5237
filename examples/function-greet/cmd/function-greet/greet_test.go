package main

import (
	"testing"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"
)

const inputOf = `"input": {"apiVersion": "greet.fn.xpkg.dev/v1beta1", "kind": "Input", "resource": "greeting", "nameFrom": "spec.guest", "languageFrom": "spec.language", "messageTo": "status.message"}`

func TestGreet(t *testing.T) {
	for name, c := range map[string]struct{ request, response string }{
		"nothing is there yet": {
			`{"meta": {"tag": "t"}, "observed": {"composite": {"resource": {"spec": {"guest": "world", "language": "fr"}}}}, ` +
				inputOf + `}`,
			`{"meta": {"tag": "t", "ttl": "60s"}, "desired": {"resources": {"greeting": {"ready": "READY_FALSE", "resource": {"apiVersion": "hello.xpkg.dev/v1alpha1", "kind": "Greeting", "spec": {"name": "world", "language": "fr"}}}}}}`,
		},
		"the greeting is ready": {
			`{"observed": {"composite": {"resource": {"spec": {"guest": "world"}}}, "resources": {"greeting": {"resource": {"status": {"message": "Hello, world!", "conditions": [{"type": "Ready", "status": "True"}]}}}}}, ` +
				inputOf + `}`,
			`{"meta": {"ttl": "60s"}, "desired": {"composite": {"resource": {"status": {"message": "Hello, world!"}}}, "resources": {"greeting": {"ready": "READY_TRUE", "resource": {"apiVersion": "hello.xpkg.dev/v1alpha1", "kind": "Greeting", "spec": {"name": "world"}}}}}}`,
		},
		"what others want stays": {
			`{"observed": {"composite": {"resource": {"spec": {"guest": "world"}}}}, "context": {"a": "b"}, "desired": {"composite": {"resource": {"status": {"other": 1}}}, "resources": {"other": {"resource": {"kind": "Other"}}}}, ` +
				inputOf + `}`,
			`{"meta": {"ttl": "60s"}, "context": {"a": "b"}, "desired": {"composite": {"resource": {"status": {"other": 1}}}, "resources": {"other": {"resource": {"kind": "Other"}}, "greeting": {"ready": "READY_FALSE", "resource": {"apiVersion": "hello.xpkg.dev/v1alpha1", "kind": "Greeting", "spec": {"name": "world"}}}}}}`,
		},
		"no name": {
			`{"observed": {"composite": {"resource": {"spec": {}}}}, ` + inputOf + `}`,
			`{"meta": {"ttl": "60s"}, "desired": {}, "results": [{"severity": "SEVERITY_FATAL", "message": "the composite resource has no text at spec.guest"}]}`,
		},
		"no input": {
			`{"observed": {"composite": {"resource": {"spec": {"guest": "world"}}}}}`,
			`{"meta": {"ttl": "60s"}, "desired": {}, "results": [{"severity": "SEVERITY_FATAL", "message": "the input must set resource and nameFrom"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			req, want := &fnv1.RunFunctionRequest{}, &fnv1.RunFunctionResponse{}
			if err := protojson.Unmarshal([]byte(c.request), req); err != nil {
				t.Fatal(err)
			}
			if err := protojson.Unmarshal([]byte(c.response), want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, greet(req), protocmp.Transform()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
