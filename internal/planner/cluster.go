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
	// listedAtOnce is the number of custom resources in a page of a list.
	listedAtOnce = "500"
	// mostIdentified is the maximum number of custom resources of a CRD that are identified. Their metadata takes about 13
	// MB.
	mostIdentified = 10000
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

func (r *reader) get(ctx context.Context, into any, accept string, params map[string]string, path ...string) error {
	req := r.rest.Get().AbsPath(path...).SetHeader("Accept", accept)
	for name, value := range params {
		if value != "" {
			req = req.Param(name, value)
		}
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
	err := r.get(ctx, &m, metadataObject, nil, "/api/v1/namespaces", metav1.NamespaceSystem)
	if apierrors.IsForbidden(err) || apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the namespace %s: %w", metav1.NamespaceSystem, err)
	}
	return m.UID, nil
}

// readFunc reads the custom resources of a CRD at a path of the API server.
type readFunc func(ctx context.Context, definition, path string) (CustomResources, error)

// CustomResources implements [Cluster]. To count, it lists the metadata of one object of each kind, with which the API
// server returns the number of the remaining ones; to identify, it lists the metadata of all of them in pages.
func (r *reader) CustomResources(ctx context.Context, definitions []string, identify bool) ([]CustomResources, error) {
	if len(definitions) == 0 {
		return nil, nil
	}
	read := readFunc(r.count)
	if identify {
		read = r.list
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
				counts[i], err = r.readUnserved(ctx, name, read)
				return err
			}
			counts[i], err = read(ctx, name, path)
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

// count counts the custom resources of a CRD.
func (r *reader) count(ctx context.Context, definition, path string) (CustomResources, error) {
	out := CustomResources{CRD: definition}
	page, err := r.page(ctx, &out, path, "1", "")
	if page == nil {
		return out, err
	}
	out.Count = int64(len(page.Items))
	if page.RemainingItemCount != nil {
		out.Count += *page.RemainingItemCount
	} else if page.Continue != "" {
		out.Unknown = "the API server does not return their number"
	}
	return out, nil
}

// list identifies the custom resources of a CRD. It only counts them if there are more than mostIdentified.
func (r *reader) list(ctx context.Context, definition, path string) (CustomResources, error) {
	out := CustomResources{CRD: definition}
	var uids []types.UID
	for next := ""; ; {
		page, err := r.page(ctx, &out, path, listedAtOnce, next)
		if page == nil {
			return out, err
		}
		if rest := page.RemainingItemCount; rest != nil && int64(len(uids)+len(page.Items))+*rest > mostIdentified {
			out.Count = int64(len(uids)+len(page.Items)) + *rest
			return out, nil
		}
		for i := range page.Items {
			uids = append(uids, page.Items[i].Metadata.UID)
		}
		if next = page.Continue; next == "" {
			out.identify(uids)
			return out, nil
		}
	}
}

// page lists the metadata of some custom resources of a CRD. It returns nil if they do not exist or cannot be read, and
// then records the reason.
func (r *reader) page(ctx context.Context, out *CustomResources, path, limit, next string) (*metadataPage, error) {
	var page metadataPage
	err := r.get(ctx, &page, metadataList, map[string]string{"limit": limit, "continue": next}, path)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		out.Unknown = "they may not be listed"
		return nil, nil
	case cannotRead(err):
		out.Unknown = "the API server cannot read them"
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("count the custom resources of %s: %w", out.CRD, err)
	}
	return &page, nil
}

// metadataPage is a page of a list of metadata, of which only the UIDs are decoded.
type metadataPage struct {
	metav1.ListMeta `json:"metadata"`
	Items           []struct {
		Metadata struct {
			UID types.UID `json:"uid"`
		} `json:"metadata"`
	} `json:"items"`
}

// readUnserved reads the custom resources of a CRD that is not among the served resources: the API server serves it in
// a moment, or it has no served version and possibly stored resources.
func (r *reader) readUnserved(ctx context.Context, definition string, read readFunc) (CustomResources, error) {
	out := CustomResources{CRD: definition}
	var crd apiextensionsv1.CustomResourceDefinition
	err := r.get(
		ctx, &crd, runtime.ContentTypeJSON, nil, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition,
	)
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
			return read(ctx, definition, "/apis/"+crd.Spec.Group+"/"+v.Name+"/"+crd.Spec.Names.Plural)
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
	if err := r.get(ctx, &doc, discoveryDocument, nil, "/apis"); err != nil {
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
