package rbac

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// undiscovered are permissions that components of Kubernetes check and that are not resources of the API server.
var undiscovered = []metav1.APIResourceList{
	{GroupVersion: "v1", APIResources: []metav1.APIResource{
		{Name: "nodes/checkpoint", Verbs: []string{"create"}},
		{Name: "nodes/log", Verbs: []string{"get"}},
		{Name: "serviceaccounts", Verbs: []string{"impersonate"}},
		{Name: "users", Verbs: []string{"impersonate"}},
	}},
	{GroupVersion: "certificates.k8s.io/v1", APIResources: []metav1.APIResource{
		{Name: "certificatesigningrequests/nodeclient", Verbs: []string{"create"}},
		{Name: "certificatesigningrequests/selfnodeclient", Verbs: []string{"create"}},
		{Name: "signers", Verbs: []string{"approve", "attest", "sign"}},
	}},
}

// readSubresources are the subresources whose verb get only reads an object or its logs.
var readSubresources = []string{"approval", "ephemeralcontainers", "log", "resize", "scale", "status"}

// Each verb of each resource that a real API server offers is either in the table of escalations or in the list of
// harmless permissions: a new version of Kubernetes adds none without a decision.
func TestEveryResourceOfTheAPIServerIsDecided(t *testing.T) {
	s := newServer(t)
	d, err := discovery.NewDiscoveryClientForConfig(s.config)
	if err != nil {
		t.Fatal(err)
	}
	_, served, err := d.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		t.Fatal(err)
	}
	for i := range undiscovered {
		served = append(served, &undiscovered[i])
	}
	decided := 0
	for _, list := range served {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			for _, verb := range r.Verbs {
				if g := (grant{group: version.Group, resource: r.Name, verb: verb}); isKubernetesGroup(g.group) {
					checkDecided(t, g)
					decided++
				}
			}
		}
	}
	if decided < 400 {
		t.Errorf("only %d permissions were checked", decided)
	}
}

func checkDecided(t *testing.T, g grant) {
	t.Helper()
	found := escalationsOfGrant(g)
	_, sub, _ := strings.Cut(g.resource, "/")
	switch {
	case slices.Contains(found, &unlisted):
		t.Errorf(
			"decide whether %s amounts to control of the cluster: it is neither in escalations nor in harmless",
			Describe(ruleOfGrant(g)),
		)
	case len(found) == 0 && sub != "" && g.verb == "get" && !slices.Contains(readSubresources, sub):
		t.Errorf("decide whether %s only reads", Describe(ruleOfGrant(g)))
	}
	named := g
	named.name = victim
	if len(found) > 0 && len(escalationsOfGrant(named)) == 0 && !isNamedRead(named) {
		t.Errorf("%s escalates only for all objects", Describe(ruleOfGrant(named)))
	}
}
