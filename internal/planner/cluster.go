package planner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/desired"
)

const (
	metadataObject    = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	metadataList      = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	discoveryDocument = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	// countersAtOnce is the maximum number of kinds that are counted concurrently.
	countersAtOnce = 8
)

// reader reads a cluster as metadata only.
type reader struct {
	*apply.Cluster
	rest rest.Interface
}

// NewCluster returns a reader of the cluster of a configuration, for a Planner.
func NewCluster(cfg *rest.Config) (Cluster, error) {
	cluster, err := apply.NewCluster(cfg)
	if err != nil {
		return nil, err
	}
	c := rest.CopyConfig(cfg)
	c.QPS = -1
	c.ContentType = runtime.ContentTypeJSON
	c.GroupVersion = &metav1.SchemeGroupVersion
	c.APIPath = "/apis"
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.RESTClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("cluster client: %w", err)
	}
	return &reader{Cluster: cluster, rest: client}, nil
}

func (r *reader) get(ctx context.Context, into any, accept string, limit string, path ...string) error {
	req := r.rest.Get().AbsPath(path...).SetHeader("Accept", accept)
	if limit != "" {
		req = req.Param("limit", limit)
	}
	result := req.Do(ctx)
	if err := result.Error(); err != nil {
		return err
	}
	raw, err := result.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

// Identity implements [Cluster].
func (r *reader) Identity(ctx context.Context) (types.UID, error) {
	var m metav1.PartialObjectMetadata
	err := r.get(ctx, &m, metadataObject, "", "/api/v1/namespaces", metav1.NamespaceSystem)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return m.UID, nil
}

// CountCustomResources implements [Cluster]. It lists the metadata of one object of each kind, with
// which the API server returns the number of the remaining ones.
func (r *reader) CountCustomResources(ctx context.Context, definitions []string) ([]CustomResources, error) {
	if len(definitions) == 0 {
		return nil, nil
	}
	served, err := r.served(ctx)
	if err != nil {
		return nil, err
	}
	counts := make([]CustomResources, len(definitions))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(countersAtOnce)
	for i, name := range definitions {
		counts[i].CRD = name
		path, ok := served[desired.ResourceOf(name)]
		group.Go(func() (err error) {
			if !ok {
				counts[i], err = r.countUnserved(ctx, name)
				return err
			}
			counts[i], err = r.count(ctx, name, path)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var out []CustomResources
	for _, c := range counts {
		if c.Count > 0 || c.Unknown != "" {
			out = append(out, c)
		}
	}
	return out, nil
}

func (r *reader) count(ctx context.Context, definition, path string) (CustomResources, error) {
	out := CustomResources{CRD: definition}
	var page metav1.PartialObjectMetadataList
	err := r.get(ctx, &page, metadataList, "1", path)
	switch {
	case apierrors.IsNotFound(err):
		return out, nil
	case apierrors.IsForbidden(err):
		out.Unknown = "they may not be listed"
		return out, nil
	case cannotRead(err):
		out.Unknown = "the API server cannot read them"
		return out, nil
	case err != nil:
		return out, fmt.Errorf("count the custom resources of %s: %w", definition, err)
	}
	out.Count = int64(len(page.Items))
	if page.RemainingItemCount != nil {
		out.Count += *page.RemainingItemCount
	} else if page.Continue != "" {
		out.Unknown = "the API server does not return their number"
	}
	return out, nil
}

// countUnserved counts the custom resources of a CRD that is not among the served resources: the API server serves it in a moment, or it
// has no served version and possibly stored resources.
func (r *reader) countUnserved(ctx context.Context, definition string) (CustomResources, error) {
	out := CustomResources{CRD: definition}
	var crd apiextensionsv1.CustomResourceDefinition
	err := r.get(ctx, &crd, runtime.ContentTypeJSON, "", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
	switch {
	case apierrors.IsNotFound(err):
		return out, nil // An XRD that is not established has no CRD.
	case apierrors.IsForbidden(err):
		out.Unknown = "its CRD may not be read"
		return out, nil
	case err != nil:
		return out, fmt.Errorf("count the custom resources of %s: %w", definition, err)
	}
	for _, v := range crd.Spec.Versions {
		if v.Served {
			return r.count(ctx, definition, "/apis/"+crd.Spec.Group+"/"+v.Name+"/"+crd.Spec.Names.Plural)
		}
	}
	out.Unknown = "the CRD serves no version"
	return out, nil
}

// cannotRead reports whether the API server failed on objects that it stores, for example because a
// webhook refuses to convert them. An uninstall must still be possible.
func cannotRead(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInternalServerError
}

// served returns the path of every resource that the API server serves, in the preferred version.
func (r *reader) served(ctx context.Context) (map[schema.GroupResource]string, error) {
	var doc apidiscovery.APIGroupDiscoveryList
	if err := r.get(ctx, &doc, discoveryDocument, "", "/apis"); err != nil {
		return nil, fmt.Errorf("list the served resources: %w", err)
	}
	out := map[schema.GroupResource]string{}
	for _, group := range doc.Items {
		for _, version := range group.Versions {
			for _, x := range version.Resources {
				key := schema.GroupResource{Group: group.Name, Resource: x.Resource}
				if _, preferred := out[key]; !preferred {
					out[key] = "/apis/" + group.Name + "/" + version.Version + "/" + x.Resource
				}
			}
		}
	}
	return out, nil
}
