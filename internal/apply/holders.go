package apply

import (
	"context"
	"encoding/json"
	"path"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Holder is an object that is being deleted and has finalizers, so that its owner is not deleted either.
type Holder struct {
	// Resource is the resource in the form of kubectl, such as "greetings.hello.xpkg.dev".
	Resource        string
	Namespace, Name string
	Finalizers      []string
	// Terminating is the message of the condition Terminating of a CRD that the API server keeps until its custom
	// resources are deleted, Defines the resource that the CRD defines, and Remaining how many of them exist, or -1 if
	// they cannot be listed. Crossplane core keeps an XRD for the same reason; Defines is then the composite resource, or
	// its claim.
	Terminating, Defines string
	Remaining            int
}

// cleanupFinalizer is the finalizer with which the API server keeps a CRD until its custom resources are deleted.
const cleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io"

// Holders returns the objects with finalizers among refs, and the custom resources with finalizers of the CRDs among
// refs, of those that are being deleted. A CRD follows its custom resources.
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
		var composed []Holder
		err := c.eachHolder(ctx, folder, resourceOf(folder), func(h Holder) {
			ref, ok := wanted[h.Name]
			switch {
			case !ok:
			case len(h.Finalizers) == 1 && h.Finalizers[0] == cleanupFinalizer:
				held = append(held, ref)
			case ref.Kind == kindXRD:
				composed = append(composed, h)
			default:
				out = append(out, h)
			}
		})
		if err != nil {
			return nil, err
		}
		for _, ref := range held {
			found, err := c.crdHolders(ctx, ref)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
		for _, h := range composed {
			found, err := c.xrdHolders(ctx, wanted[h.Name], h)
			if err != nil {
				return nil, err
			}
			out = append(out, found...)
		}
	}
	return out, nil
}

// xrdHolders returns the composite resources and claims with finalizers that keep an XRD, and the XRD for each of both
// that remains. Without remaining ones, the XRD is like any other object with finalizers.
func (c *Cluster) xrdHolders(ctx context.Context, ref plan.Ref, xrd Holder) ([]Holder, error) {
	raw, exists, err := c.object(ctx, ref)
	if err != nil || !exists {
		return nil, err
	}
	var x struct {
		Spec struct {
			Group      string
			ClaimNames struct{ Plural string }
		}
	}
	if err := json.Unmarshal(raw, &x); err != nil {
		return nil, ErrServer.New(err, "read %s %s", ref.Kind, ref.Name)
	}
	crds := []string{ref.Name}
	if claims := x.Spec.ClaimNames.Plural; claims != "" {
		crds = append(crds, claims+"."+x.Spec.Group)
	}
	var out []Holder
	for _, name := range crds {
		found, err := c.crdHolders(ctx, plan.DefinitionRef(name))
		if err != nil {
			return nil, err
		}
		for _, h := range found {
			switch {
			case h.Defines == "":
				out = append(out, h)
			case h.Remaining != 0:
				of := xrd
				of.Defines, of.Remaining = h.Defines, h.Remaining
				out = append(out, of)
			}
		}
	}
	if len(out) == 0 {
		return []Holder{xrd}, nil
	}
	return out, nil
}

// crdHolders returns the custom resources with finalizers that keep a CRD, and the CRD. Custom resources that the API
// server cannot list, for example because a webhook refuses to convert them, are not an error: the condition of the CRD
// states the problem.
func (c *Cluster) crdHolders(ctx context.Context, ref plan.Ref) ([]Holder, error) {
	raw, exists, err := c.object(ctx, ref)
	if err != nil || !exists {
		return nil, err
	}
	d, err := parseDefinition(ref, raw)
	if err != nil {
		return nil, err
	}
	crd := Holder{
		Resource: "customresourcedefinitions.apiextensions.k8s.io", Name: ref.Name, Finalizers: []string{cleanupFinalizer},
		Defines: ref.Name, Remaining: -1,
	}
	for _, cond := range d.Status.Conditions {
		if cond.Type == string(apiextensionsv1.Terminating) && cond.Status == string(apiextensionsv1.ConditionTrue) {
			crd.Terminating = cond.Message
		}
	}
	var out []Holder
	for _, v := range d.Spec.Versions {
		if !v.Served {
			continue
		}
		remaining := 0
		err := each(ctx, c, path.Join("/apis", d.Spec.Group, v.Name, d.Spec.Names.Plural), func(p partial) {
			remaining++
			if m := p.Metadata; m.DeletionTimestamp != "" && len(m.Finalizers) > 0 {
				out = append(out, Holder{Resource: ref.Name, Namespace: m.Namespace, Name: m.Name, Finalizers: m.Finalizers})
			}
		})
		if err == nil {
			crd.Remaining = remaining
		}
		break
	}
	return append(out, crd), nil
}

// eachHolder calls a function for the objects of a collection that are being deleted and have finalizers. A collection
// that is not served has none.
func (c *Cluster) eachHolder(ctx context.Context, folder, resource string, do func(Holder)) error {
	err := each(ctx, c, folder, func(p partial) {
		if m := p.Metadata; m.DeletionTimestamp != "" && len(m.Finalizers) > 0 {
			do(Holder{Resource: resource, Namespace: m.Namespace, Name: m.Name, Finalizers: m.Finalizers})
		}
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return classify(err, "list %s", resource)
}

// resourceOf returns the resource of the path of a collection in the form of kubectl.
func resourceOf(folder string) string {
	group, _, _ := strings.Cut(strings.TrimPrefix(folder, "/apis/"), "/")
	return path.Base(folder) + "." + group
}
