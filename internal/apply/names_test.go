package apply_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// paths is an API server that answers by path, and serves no other path. It lists the paths.
type paths struct {
	replies map[string]reply
	calls   []string
}

// RoundTrip implements http.RoundTripper.
func (p *paths) RoundTrip(r *http.Request) (*http.Response, error) {
	p.calls = append(p.calls, r.URL.Path)
	if answer, ok := p.replies[r.URL.Path]; ok {
		return answer(r)
	}
	return answers(http.StatusNotFound, "text/plain", "404 page not found")(r)
}

// The kinds of a group are only read if the API server serves the group. The APIServices, which all packages share,
// show that; an API server without them is asked for each group.
func TestNamesAreOnlyReadForServedGroups(t *testing.T) {
	const services = "/apis/apiregistration.k8s.io/v1/apiservices"
	one := []string{"one.names.test"}
	four := []string{"one.names.test", "two.names.test", "three.names.test", "four.names.test"}
	document := answers(http.StatusOK,
		"application/json", encode(apidiscovery.APIGroupDiscoveryList{Items: []apidiscovery.APIGroupDiscovery{{
			ObjectMeta: metav1.ObjectMeta{Name: "one.names.test"},
			Versions: []apidiscovery.APIVersionDiscovery{{Version: "v1", Resources: []apidiscovery.APIResourceDiscovery{{
				Resource: "vessels", ShortNames: []string{"boats"},
			}}}},
		}}}))
	list := func(groups string) reply {
		return answers(http.StatusOK, "application/json", `{"items":[{"spec":{"group":"`+groups+`","version":"v1"}}]}`)
	}
	for name, tc := range map[string]struct {
		groups  []string
		replies map[string]reply
		want    []string
		refused int
	}{
		"New": {four, map[string]reply{services: list("other.test")}, []string{services}, 0},
		"Served": {
			four, map[string]reply{services: list("one.names.test"), "/apis": document}, []string{services, "/apis"}, 1,
		},
		"Unknown": {one, map[string]reply{"/apis": document}, []string{services, "/apis/one.names.test"}, 0},
		"UnknownServed": {
			one, map[string]reply{"/apis/one.names.test": answers(http.StatusOK, "application/json", `{}`), "/apis": document},
			[]string{services, "/apis/one.names.test", "/apis"}, 1,
		},
		"UnknownAndMany": {four, map[string]reply{"/apis": document}, []string{services, "/apis"}, 1},
		"ServicesRefused": {
			one, map[string]reply{services: statusReply(http.StatusForbidden, metav1.StatusReasonForbidden)}, []string{services},
			-1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := &paths{replies: tc.replies}
			c, err := apply.NewCluster(&rest.Config{Host: "http://played.test", Transport: server})
			if err != nil {
				t.Fatal(err)
			}
			var p plan.Plan
			for _, group := range tc.groups {
				p.Changes = append(p.Changes, plan.Change{Action: plan.Create, Ref: definition("boats." + group)})
			}
			p, err = c.Preflight(t.Context(), p, func(ref plan.Ref) ([]byte, error) {
				_, group, _ := strings.Cut(ref.Name, ".")
				return marshal(t, boats(group)), nil
			}, apply.Breaks{})
			if (err != nil) != (tc.refused < 0) || err == nil && len(p.Refusals) != tc.refused {
				t.Errorf("%v, refusals %v", err, p.Refusals)
			}
			got := slices.DeleteFunc(
				server.calls, func(path string) bool { return strings.Contains(path, "compositeresourcedefinitions") },
			)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}
