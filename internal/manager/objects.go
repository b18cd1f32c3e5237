package manager

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/format"
	"github.com/xpkg-dev/xpkg/internal/plan"
)

// objects are what a revision wants in the cluster.
type objects struct {
	want  []plan.Desired
	bytes map[plan.Ref][]byte
	// kinds are the resources that the definitions among the objects make the
	// API server serve, by the name of the definition.
	kinds map[string]schema.GroupResource
}

func (o *objects) desired() []plan.Desired { return o.want }

func (o *objects) content(ref plan.Ref) ([]byte, error) { return o.bytes[ref], nil }

func (o *objects) refs() []plan.Ref {
	refs := make([]plan.Ref, len(o.want))
	for i, d := range o.want {
		refs[i] = d.Ref
	}
	return refs
}

// missing lists the definitions whose kinds the API server does not serve yet.
func (o *objects) missing(ctx context.Context, cluster *apply.Cluster) ([]string, error) {
	if len(o.kinds) == 0 {
		return nil, nil
	}
	served, err := cluster.Served(ctx)
	if err != nil {
		return nil, err
	}
	var missing []string
	for name, kind := range o.kinds {
		if !served[kind] {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// wanted gives the objects of a package, with the common labels and annotations
// of the revision on them. A Function brings none: its definitions only tell the
// schema of its input (xpkg specification, "Function Package Requirements").
func wanted(pkg *format.Package, rev v1.PackageRevision, namespace string) (*objects, error) {
	out := &objects{bytes: map[plan.Ref][]byte{}, kinds: map[string]schema.GroupResource{}}
	if rev.PackageKind() == v1.FunctionKind {
		return out, nil
	}
	for _, o := range pkg.Objects {
		if o.GVK.Group == "admissionregistration.k8s.io" {
			// A webhook without a certificate and a program behind it would
			// refuse every write; it is established with the runtime.
			continue
		}
		service := service{Name: rev.GetLabels()[v1.LabelPackage], Namespace: namespace}
		if err := out.add(o, rev.RevisionSpec(), service); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (o *objects) add(object format.Object, spec *v1.PackageRevisionSpec, webhooks service) error {
	raw, err := installable(object, webhooks)
	if err != nil {
		return err
	}
	d, err := desired(object, raw, spec)
	if err != nil {
		return fmt.Errorf("%s %s: %w", object.GVK.Kind, object.Name, err)
	}
	o.want = append(o.want, d)
	o.bytes[d.Ref] = raw
	if object.GVK.Kind == "CustomResourceDefinition" {
		kind, err := definedKind(raw)
		if err != nil {
			return fmt.Errorf("CustomResourceDefinition %s: %w", object.Name, err)
		}
		o.kinds[object.Name] = kind
	}
	return nil
}

// installable is an object as API servers of today take it: definitions of the
// version v1beta1 are written as v1, and a conversion webhook is told where the
// program of the package answers.
func installable(object format.Object, webhooks service) ([]byte, error) {
	raw, err := object.JSON()
	if err != nil || object.GVK.Kind != "CustomResourceDefinition" {
		return raw, err
	}
	if object.GVK.Version == "v1beta1" {
		if raw, err = format.ConvertV1Beta1CRD(raw); err != nil {
			return nil, err
		}
	}
	return withConversion(raw, webhooks)
}

// desired is an object as the plan sees it. The digest covers what the package
// says and what the revision adds to it.
func desired(object format.Object, raw []byte, spec *v1.PackageRevisionSpec) (plan.Desired, error) {
	var o struct {
		APIVersion string `json:"apiVersion"`
		Metadata   struct {
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return plan.Desired{}, err
	}
	added, err := json.Marshal([]map[string]string{spec.CommonLabels, spec.CommonAnnotations})
	if err != nil {
		return plan.Desired{}, err
	}
	h := sha256.New()
	h.Write(raw)
	h.Write(added)
	return plan.Desired{
		Ref:         plan.Ref{APIVersion: o.APIVersion, Kind: object.GVK.Kind, Name: object.Name},
		Labels:      overlay(o.Metadata.Labels, spec.CommonLabels),
		Annotations: overlay(o.Metadata.Annotations, spec.CommonAnnotations),
		Digest:      "sha256:" + hex.EncodeToString(h.Sum(nil)),
	}, nil
}

// definedKind is the resource that a definition makes the API server serve.
func definedKind(raw []byte) (schema.GroupResource, error) {
	var crd struct {
		Spec struct {
			Group string `json:"group"`
			Names struct {
				Plural string `json:"plural"`
			} `json:"names"`
		} `json:"spec"`
	}
	err := json.Unmarshal(raw, &crd)
	return schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}, err
}
