package apply

import (
	"context"
	"path"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Holder is an object that is being deleted and has finalizers, so that its owner is not gone either.
type Holder struct {
	// Resource is the resource as kubectl names it, such as "greetings.hello.xpkg.dev".
	Resource        string
	Namespace, Name string
	Finalizers      []string
}

// cleanupFinalizer is the finalizer with which the API server keeps a CRD until its custom resources are deleted.
const cleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io"

// Holders returns the objects with finalizers among refs, and the custom resources with finalizers of the CRDs among
// refs, of those that are being deleted.
func (c *Cluster) Holders(ctx context.Context, refs []plan.Ref) ([]Holder, error) {
	collections, err := byCollection(refs)
	if err != nil {
		return nil, err
	}
	var out []Holder
	for folder, refs := range collections {
		wanted := map[string]plan.Ref{}
		for _, ref := range refs {
			wanted[ref.Name] = ref
		}
		var held []plan.Ref
		err := c.eachHolder(ctx, folder, resourceOf(folder), func(h Holder) {
			ref, ok := wanted[h.Name]
			switch {
			case !ok:
			case len(h.Finalizers) == 1 && h.Finalizers[0] == cleanupFinalizer:
				held = append(held, ref)
			default:
				out = append(out, h)
			}
		})
		if err != nil {
			return nil, err
		}
		for _, ref := range held {
			d, exists, err := c.definition(ctx, ref)
			if err != nil || !exists || len(d.Served) == 0 {
				return out, err
			}
			folder := path.Join("/apis", d.Group, d.Served[0], d.Plural)
			if err := c.eachHolder(ctx, folder, ref.Name, func(h Holder) { out = append(out, h) }); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// eachHolder calls a function for the objects of a collection that are being deleted and have finalizers. A collection
// that is not served has none.
func (c *Cluster) eachHolder(ctx context.Context, folder, resource string, do func(Holder)) error {
	err := c.each(ctx, folder, func(p partial) {
		if m := p.Metadata; m.DeletionTimestamp != "" && len(m.Finalizers) > 0 {
			do(Holder{Resource: resource, Namespace: m.Namespace, Name: m.Name, Finalizers: m.Finalizers})
		}
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return classify(err, "list %s", resource)
}

// resourceOf returns the resource of the path of a collection as kubectl names it.
func resourceOf(folder string) string {
	group, _, _ := strings.Cut(strings.TrimPrefix(folder, "/apis/"), "/")
	return path.Base(folder) + "." + group
}
