package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const discoveryDocument = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// Served returns the resources that the API server serves. It contains a custom resource exactly if its CRD is
// Established, so one call is sufficient for thousands of CRDs. Concurrent callers share a call that began at most
// maxAge ago; with 0, after they asked. The result must not be changed.
func (c *Cluster) Served(ctx context.Context, maxAge time.Duration) (map[schema.GroupResource]bool, error) {
	d, err := c.served.Get(ctx, maxAge, c.readServed)
	return d.resources, err
}

// SharedKinds returns the kinds of an API group that the API server serves, as Kinds does, from the call that Served
// shares.
func (c *Cluster) SharedKinds(ctx context.Context, group string, maxAge time.Duration) ([]ServedKind, error) {
	d, err := c.served.Get(ctx, maxAge, c.readServed)
	return d.kinds[group], err
}

// discovery is the content of the discovery document.
type discovery struct {
	resources map[schema.GroupResource]bool
	// kinds maps API groups to their kinds, ordered by plural.
	kinds map[string][]ServedKind
}

// serves reports whether the API server serves one of some groups.
func (d discovery) serves(groups map[string]bool) bool {
	for group := range groups {
		if _, ok := d.kinds[group]; ok {
			return true
		}
	}
	return false
}

func (c *Cluster) readServed(ctx context.Context) (discovery, error) {
	doc, err := c.discover(ctx, "/apis")
	if err != nil {
		return discovery{}, err
	}
	out := discovery{map[schema.GroupResource]bool{}, map[string][]ServedKind{}}
	for _, group := range doc.Items {
		kinds := kindSet{}
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				out.resources[schema.GroupResource{Group: group.Name, Resource: r.Resource}] = true
				if r.ResponseKind != nil {
					kinds.add(ServedKind{Kind: r.ResponseKind.Kind, Plural: r.Resource, Singular: r.SingularResource}, version.Version)
				}
			}
		}
		out.kinds[group.Name] = kinds.sorted()
	}
	return out, nil
}

// A kindSet has the kinds of an API group by their plurals.
type kindSet map[string]*ServedKind

// add adds a kind in an API version.
func (s kindSet) add(k ServedKind, version string) {
	if s[k.Plural] == nil {
		s[k.Plural] = &k
	}
	s[k.Plural].Versions = append(s[k.Plural].Versions, version)
}

// sorted returns the kinds, ordered by plural.
func (s kindSet) sorted() []ServedKind {
	var out []ServedKind
	for _, k := range s {
		out = append(out, *k)
	}
	slices.SortFunc(out, func(a, b ServedKind) int { return cmp.Compare(a.Plural, b.Plural) })
	return out
}

// WhyNotEstablished reads one complete CRD and returns the reason in its conditions why it is not served.
func (c *Cluster) WhyNotEstablished(ctx context.Context, name string) (string, error) {
	raw, err := c.get(ctx, runtime.ContentTypeJSON, nil, definitionsPath, name)
	if err != nil {
		return "", classify(err, "read CustomResourceDefinition %s", name)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := json.Unmarshal(raw, &crd); err != nil {
		return "", classify(err, "read CustomResourceDefinition %s", name)
	}
	for _, cond := range crd.Status.Conditions {
		if cond.Type == apiextensionsv1.NamesAccepted && cond.Status == apiextensionsv1.ConditionFalse {
			return cond.Message, nil
		}
	}
	return "the API server has not established it yet", nil
}

// ClusterScoped reports for every resource that the API server serves, including the core group, whether it is
// cluster-scoped.
func (c *Cluster) ClusterScoped(ctx context.Context) (map[schema.GroupResource]bool, error) {
	out := map[schema.GroupResource]bool{}
	for _, path := range []string{"/api", "/apis"} {
		doc, err := c.discover(ctx, path)
		if err != nil {
			return nil, err
		}
		for _, group := range doc.Items {
			for _, version := range group.Versions {
				for _, r := range version.Resources {
					out[schema.GroupResource{Group: group.Name, Resource: r.Resource}] = r.Scope == apidiscovery.ScopeCluster
				}
			}
		}
	}
	return out, nil
}

func (c *Cluster) discover(ctx context.Context, path string) (*apidiscovery.APIGroupDiscoveryList, error) {
	raw, err := c.get(ctx, discoveryDocument, nil, path)
	if err != nil {
		return nil, classify(err, "list the served resources")
	}
	doc := &apidiscovery.APIGroupDiscoveryList{}
	if err := json.Unmarshal(raw, doc); err != nil {
		return nil, classify(err, "list the served resources")
	}
	return doc, nil
}

// A ServedKind is a kind that the API server serves, with its API versions.
type ServedKind struct {
	Kind, Plural, Singular string
	Versions               []string
}

// Kinds returns the kinds of an API group that the API server serves, ordered by plural. It sends one call for the
// group and one for each of its versions. There is none for a group that is not served.
func (c *Cluster) Kinds(ctx context.Context, group string) ([]ServedKind, error) {
	var doc metav1.APIGroup
	if found, err := c.discoverGroup(ctx, &doc, "/apis/"+group); !found || err != nil {
		return nil, err
	}
	kinds := kindSet{}
	for _, version := range doc.Versions {
		var list metav1.APIResourceList
		if _, err := c.discoverGroup(ctx, &list, "/apis/"+group+"/"+version.Version); err != nil {
			return nil, err
		}
		for _, r := range list.APIResources {
			if strings.Contains(r.Name, "/") {
				continue // a subresource
			}
			kinds.add(ServedKind{Kind: r.Kind, Plural: r.Name, Singular: r.SingularName}, version.Version)
		}
	}
	return kinds.sorted(), nil
}

// discoverGroup reads a discovery document, and reports whether it exists.
func (c *Cluster) discoverGroup(ctx context.Context, into any, path string) (bool, error) {
	raw, err := c.get(ctx, runtime.ContentTypeJSON, nil, path)
	if isMissing(err) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		return false, classify(err, "list the kinds of %s", strings.TrimPrefix(path, "/apis/"))
	}
	return true, nil
}

func isMissing(err error) bool {
	return apierrors.IsNotFound(err) || errors.Is(err, ErrKindNotServed)
}
