package apply

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// apiServicesPath is the path of the APIServices, which name the servers of all groups and versions.
const apiServicesPath = "/apis/apiregistration.k8s.io/v1/apiservices"

// aggregated refuses definitions with a version that an aggregated API serves. It reads the content of the groups that
// aggregated APIs serve.
func (f *preflight) aggregated(ctx context.Context, written []plan.Ref) error {
	if len(written) == 0 {
		return nil
	}
	services, err := f.cluster.services.Get(ctx, Recent, f.cluster.apiServices)
	if err != nil {
		return err
	}
	for _, ref := range written {
		group := groupOf(ref)
		if len(services.aggregated[group]) == 0 {
			continue
		}
		want, err := f.wanted(ref)
		if err != nil {
			return err
		}
		f.refuse(plan.Aggregated(ref, want, services.aggregated[group])...)
	}
	return nil
}

// apiServices are the APIServices of an API server.
type apiServices struct {
	// groups are all API groups that the API server or an aggregated API serves, those of CRDs included; nil if the API
	// server has no aggregation layer.
	groups map[string]bool
	// aggregated are the groups and versions that aggregated APIs serve, by group.
	aggregated map[string][]plan.APIService
}

// serves reports whether one of some groups is served, and false if the groups that are served are unknown.
func (s apiServices) serves(groups map[string]bool) (served, known bool) {
	for group := range groups {
		if s.groups[group] {
			return true, true
		}
	}
	return false, s.groups != nil
}

// apiServices returns the APIServices. An API server without the aggregation layer has none.
func (c *Cluster) apiServices(ctx context.Context) (apiServices, error) {
	raw, err := c.get(ctx, runtime.ContentTypeJSON, nil, apiServicesPath)
	if notServed(err) {
		return apiServices{}, nil
	}
	if err != nil {
		return apiServices{}, classify(err, "list the APIServices")
	}
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
			Spec struct {
				Group   string `json:"group"`
				Version string `json:"version"`
				Service *struct {
					Namespace string `json:"namespace"`
					Name      string `json:"name"`
				} `json:"service"`
			} `json:"spec"`
		} `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return apiServices{}, classify(err, "list the APIServices")
	}
	out := apiServices{map[string]bool{}, map[string][]plan.APIService{}}
	for _, i := range list.Items {
		out.groups[i.Spec.Group] = true
		if s := i.Spec.Service; s != nil {
			out.aggregated[i.Spec.Group] = append(out.aggregated[i.Spec.Group], plan.APIService{
				Name: i.Metadata.Name, Group: i.Spec.Group, Version: i.Spec.Version, Service: s.Namespace + "/" + s.Name,
			})
		}
	}
	return out, nil
}
