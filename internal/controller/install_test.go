package controller_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// counted starts a manager whose requests are listed.
func counted(t *testing.T, s *testEnv) *requestLog {
	t.Helper()
	sent := &requestLog{}
	s.Config = rest.CopyConfig(s.Config)
	s.Config.Wrap(sent.record)
	s.start(t)
	sent.reset()
	return sent
}

// kinds counts requests by method and resource, with the subresource. A request for a document of discovery counts for
// /apis.
func (l *requestLog) kinds() map[string]int {
	out := map[string]int{}
	for _, r := range l.all() {
		method, uri, _ := strings.Cut(r, " ")
		path, _, _ := strings.Cut(uri, "?")
		parts := strings.Split(strings.Trim(path, "/"), "/")
		kind := "/apis"
		if parts[0] == "apis" && len(parts) > 3 {
			kind = parts[3]
		} else if parts[0] == "api" {
			kind = parts[len(parts)-1]
		}
		if len(parts) > 5 && parts[0] == "apis" {
			kind += "/" + parts[5]
		}
		out[method+" "+kind]++
	}
	return out
}

// describe returns the numbers of requests, largest first.
func describe(kinds map[string]int) string {
	var out []string
	for _, kind := range slices.SortedFunc(
		maps.Keys(kinds), func(a, b string) int { return cmp.Or(kinds[b]-kinds[a], cmp.Compare(a, b)) },
	) {
		out = append(out, fmt.Sprintf("%d %s", kinds[kind], kind))
	}
	return strings.Join(out, "\n")
}

// Packages that are created at once share the reads of discovery, of the revisions and of the APIServices. For each
// package, the manager only writes: the revision, the CRD, two roles for users, the statuses and an event.
func TestPackagesThatAreCreatedAtOnceShareTheirReads(t *testing.T) {
	const packages = 30
	s := newEnv(t)
	namespaced(t, s)
	r := newRegistry(t)
	var all []*v1.Provider
	for i := range packages {
		name := fmt.Sprintf("at-once-%02d", i)
		ref, _ := r.push(t, "acme/"+name+":v1", provider(name, crd(name+".test", "Thing", "one")))
		all = append(all, env.NewProvider(name, ref))
	}
	sent := counted(t, s)
	for _, p := range all {
		s.CreateTemporary(t, p)
	}
	for _, p := range all {
		s.WaitHealthy(t, p)
	}
	for _, request := range sent.all() {
		if strings.HasPrefix(request, "GET ") && strings.Contains(request, "at-once-") {
			t.Errorf("a read for one package: %s", request)
		}
	}
	kinds := sent.kinds()
	if n := kinds["GET providerrevisions"]; n > packages/3 {
		t.Errorf("%d lists of revisions:\n%s", n, describe(kinds))
	}
	for kind, most := range map[string]int{
		"POST providerrevisions": 1, "POST customresourcedefinitions": 1, "POST clusterroles": 2,
		"PUT providers/status": 2, "PUT providerrevisions/status": 1, "POST events": 1,
	} {
		if n := kinds[kind]; n > most*packages+packages/5 {
			t.Errorf("%d times %s for %d packages:\n%s", n, kind, packages, describe(kinds))
		}
	}
}

// The watch of CRDs shows when the API server has established new CRDs, so a package with many CRDs needs as few
// requests for discovery as one with one CRD, and as few others.
func TestInstallingManyCRDsNeedsFewOtherRequests(t *testing.T) {
	const definitions, others = 60, 20
	s := newEnv(t)
	namespaced(t, s)
	r := newRegistry(t)
	var crds []string
	for i := range definitions {
		crds = append(crds, crd(fmt.Sprintf("group%d.many-crds.test", i%7), fmt.Sprintf("Thing%02d", i), "one"))
	}
	ref, _ := r.push(t, "acme/many-crds:v1", provider("many-crds", crds...))
	sent := counted(t, s)
	p := env.NewProvider("many-crds", ref)
	s.CreateTemporary(t, p)
	s.WaitHealthy(t, p)
	kinds := sent.kinds()
	if n := kinds["GET /apis"]; n > 5 {
		t.Errorf("%d requests for discovery:\n%s", n, describe(kinds))
	}
	// The manager may still read the CRDs of its own API.
	own := func(request string) bool {
		return strings.Contains(request, "customresourcedefinitions/") && !strings.Contains(request, "many-crds")
	}
	if n := len(slices.DeleteFunc(sent.all(), own)) - definitions; kinds["POST customresourcedefinitions"] != definitions || n > others {
		t.Errorf("%d requests other than those that create the CRDs:\n%s", n, describe(kinds))
	}
}
