package bench_test

import (
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequestsAreParsed(t *testing.T) {
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	cases := map[string]struct {
		method, url string
		want        call
		about       string
	}{
		"Discovery": {"GET", "/apis", call{verb: verbGet}, aboutDiscovery},
		"Group":     {"GET", "/apis/pkg.crossplane.io/v1", call{verb: verbGet}, aboutDiscovery},
		"Core":      {"GET", "/api/v1", call{verb: verbGet}, aboutDiscovery},
		"List": {
			"GET", definitions + "?limit=500",
			call{verb: verbList, group: "apiextensions.k8s.io", resource: "customresourcedefinitions"}, aboutObjects,
		},
		"Page": {
			"GET", definitions + "?continue=x",
			call{verb: verbList, group: "apiextensions.k8s.io", resource: "customresourcedefinitions", page: true}, aboutObjects,
		},
		"Get": {
			"GET", definitions + "/a.b",
			call{verb: verbGet, group: "apiextensions.k8s.io", resource: "customresourcedefinitions", name: "a.b"}, aboutObjects,
		},
		"Create": {
			"POST", definitions, call{verb: verbPost, group: "apiextensions.k8s.io", resource: "customresourcedefinitions"},
			aboutObjects,
		},
		"Status": {"PUT", "/apis/pkg.crossplane.io/v1/providers/a/status", call{
			verb: verbPut, group: "pkg.crossplane.io", resource: "providers", name: "a", subresource: "status",
		}, aboutPackages},
		"Watch": {
			"GET", "/apis/pkg.crossplane.io/v1/providers?watch=true",
			call{verb: verbWatch, group: "pkg.crossplane.io", resource: "providers"}, aboutPackages,
		},
		"Event": {
			"POST", "/apis/events.k8s.io/v1/namespaces/default/events",
			call{verb: verbPost, group: "events.k8s.io", resource: "events"}, aboutEvents,
		},
		"Namespace": {
			"GET", "/api/v1/namespaces/default", call{verb: verbGet, resource: "namespaces", name: "default"}, aboutOther,
		},
		"Secret": {
			"GET", "/api/v1/namespaces/default/secrets/a", call{verb: verbGet, resource: "secrets", name: "a"}, aboutOther,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := parseCall(httptest.NewRequest(tc.method, tc.url, nil))
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(call{})); diff != "" {
				t.Error(diff)
			}
			if got.about() != tc.about {
				t.Errorf("it is about %s, want %s", got.about(), tc.about)
			}
		})
	}
}

func TestCallConcernsItsBundleOnly(t *testing.T) {
	b := bundle{tag: "b01"}
	for name, tc := range map[string]struct {
		call call
		want bool
	}{
		"Object": {
			call{verb: verbPut, resource: "customresourcedefinitions", name: "vpcs.ec2.b01.upbound.io"}, true,
		},
		"ObjectOfAnother": {
			call{verb: verbPut, resource: "customresourcedefinitions", name: "vpcs.ec2.b02.upbound.io"}, false,
		},
		"Package":           {call{verb: verbPut, resource: "providers", name: "bench-b01"}, true},
		"Revision":          {call{verb: verbPut, resource: "providerrevisions", name: "bench-b01-0123456789ab"}, true},
		"PackageOfAnother":  {call{verb: verbPut, resource: "providers", name: "bench-b011"}, false},
		"ListOfDefinitions": {call{verb: verbList, resource: "customresourcedefinitions"}, true},
		"Lock":              {call{verb: verbPut, resource: "locks", name: "lock"}, false},
		"Discovery":         {call{verb: verbGet}, false},
	} {
		if got := tc.call.concerns(b); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestCallsAreCounted(t *testing.T) {
	c := calls{
		{verb: verbList, resource: "locks", received: 5}, {verb: verbList, resource: "locks", page: true}, {verb: verbGet},
		{verb: verbPut, resource: "providers", subresource: "status", sent: 3}, {verb: verbWatch},
	}
	sent, received := c.bytes()
	got := []any{c.requests(), c.writes(), c.lists(), sent, received, c.kinds()}
	if diff := cmp.Diff(
		[]any{4, 1, 1, int64(3), int64(5), "2 LIST locks, 1 GET discovery, 1 PUT providers/status"}, got,
	); diff != "" {
		t.Errorf("requests, writes, lists, bytes sent and received, kinds (-want +got):\n%s", diff)
	}
}
