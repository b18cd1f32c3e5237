// Package desired returns the objects of a package revision as they should exist in a cluster: the objects of the
// package in the API versions of current API servers, with the additions of the revision. It is pure.
package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/crd"
)

// Options are the additions of a revision to the objects of its package.
type Options struct {
	// Labels and Annotations are added to every object. They take precedence over values of the package, which cannot set
	// reserved ones.
	Labels, Annotations map[string]string
	// Package is the name of the package. The names of its webhook configurations contain it.
	Package string
	// Webhooks is the default address of the runtime's webhooks; see [Objects.SetWebhookService].
	Webhooks Service
	// Omit reports whether the CRD with a name is left out, because its kind is inactive. It may be nil.
	Omit func(definition string) bool
}

// Objects are the desired objects of a revision.
type Objects struct {
	want    []plan.Desired
	content map[plan.Ref]func() ([]byte, error)
	// definitions are the resources that the CRDs among the objects define, by the name of the definition.
	definitions map[string]schema.GroupResource
	// omitted are the resources of the CRDs that are left out.
	omitted    []schema.GroupResource
	composites func() (map[plan.Ref]rbac.Composite, error)
	// service is the address of the runtime's webhooks, and caBundle the certificates that verify it, in PEM.
	service  Service
	caBundle []byte
}

func newObjects() *Objects {
	out := &Objects{content: map[plan.Ref]func() ([]byte, error){}, definitions: map[string]schema.GroupResource{}}
	out.composites = sync.OnceValues(out.readComposites)
	return out
}

// Of returns the objects of a package. A Function has none: its CRDs only describe the schema of its input (xpkg
// specification, "Function Package Requirements").
func Of(pkg *xpkg.Package, opts Options) (*Objects, error) {
	out := newObjects()
	out.service = opts.Webhooks
	if pkg.Meta.Kind == xpkg.Function {
		return out, nil
	}
	names := webhookNames{prefix: "crossplane-" + strings.ToLower(string(pkg.Meta.Kind)) + "-" + opts.Package}
	for _, o := range pkg.Objects {
		if opts.Omit != nil && definesCRD(o.GVK.GroupKind()) && opts.Omit(o.Name) {
			out.omitted = append(out.omitted, ResourceOf(o.Name))
			continue
		}
		if err := out.add(o, names.of(o), opts); err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GVK.Kind, o.Name, err)
		}
	}
	return out, nil
}

// add adds an object. It reads only the index entry of an object from an index, so an unchanged package costs
// almost nothing.
func (o *Objects) add(object xpkg.Object, name string, opts Options) error {
	content := func() ([]byte, error) { return o.installable(object) }
	if gk := object.GVK.GroupKind(); isManaged(gk) || isDefinition(gk) && object.GVK.Version != "v1" {
		// An object that cannot be converted is rejected before the first write.
		if _, err := content(); err != nil {
			return err
		}
	}
	summary, err := object.Summary()
	if err != nil {
		return err
	}
	o.put(plan.Desired{
		Ref: refOf(object, name), Digest: digest(object, summary, opts.Webhooks), CallsRuntime: summary.CallsRuntime,
		Labels:      Overlay(xpkg.WithoutReserved(summary.Labels), opts.Labels),
		Annotations: Overlay(xpkg.WithoutReserved(summary.Annotations), opts.Annotations),
	}, content)
	return nil
}

func (o *Objects) put(d plan.Desired, content func() ([]byte, error)) {
	o.want = append(o.want, d)
	o.content[d.Ref] = content
	if d.Ref.Kind == definitionKind {
		o.definitions[d.Ref.Name] = ResourceOf(d.Ref.Name)
	}
}

// ResourceOf returns the resource that a CRD defines: its name is always "<plural>.<group>".
func ResourceOf(definition string) schema.GroupResource {
	plural, group, _ := strings.Cut(definition, ".")
	return schema.GroupResource{Group: group, Resource: plural}
}

// Defined returns the resources that the CRDs and XRDs among the objects define.
func (o *Objects) Defined() []schema.GroupResource { return Defined(o.Refs()) }

// Offered returns the resources that the package defines: those of Defined, and those of the CRDs that are left out.
func (o *Objects) Offered() []schema.GroupResource { return append(o.Defined(), o.omitted...) }

// Defined returns the resources that the CRDs and XRDs among refs define.
func Defined(refs []plan.Ref) []schema.GroupResource {
	var out []schema.GroupResource
	for _, ref := range refs {
		if ref.Kind == definitionKind || ref.Kind == compositeKind {
			out = append(out, ResourceOf(ref.Name))
		}
	}
	return out
}

// derivation is the version of the transformation of objects. It changes when the same object is installed in another
// form, and with it the digests of all objects.
const derivation = "1"

// webhookDerivation is like derivation, for webhook configurations.
const webhookDerivation = "2"

// digest covers everything in an installed object except the CA bundle: only
// objects that call the runtime have one, and record its hash separately.
func digest(object xpkg.Object, summary xpkg.Summary, webhooks Service) string {
	h := sha256.New()
	version := derivation
	if object.IsWebhookConfiguration() {
		version = webhookDerivation
	}
	fmt.Fprintf(h, "%s\n%x\n", version, summary.SHA256)
	if summary.CallsRuntime {
		fmt.Fprintf(h, "%s\n%s\n", webhooks.Namespace, webhooks.Name)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// refOf returns the reference of an object in the cluster.
func refOf(object xpkg.Object, name string) plan.Ref {
	gvk := object.GVK
	if definesCRD(gvk.GroupKind()) {
		gvk = schema.GroupVersionKind{Group: definitionGroup, Version: "v1", Kind: definitionKind}
	}
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	return plan.Ref{APIVersion: apiVersion, Kind: kind, Name: name}
}

const (
	definitionGroup = "apiextensions.k8s.io"
	definitionKind  = "CustomResourceDefinition"
	managedGroup    = "apiextensions.crossplane.io"
	managedKind     = "ManagedResourceDefinition"
	compositeKind   = "CompositeResourceDefinition"
)

func isDefinition(gk schema.GroupKind) bool {
	return gk.Group == definitionGroup && gk.Kind == definitionKind
}

func isManaged(gk schema.GroupKind) bool {
	return gk.Group == managedGroup && gk.Kind == managedKind
}

// definesCRD reports whether an object is installed as a CRD.
func definesCRD(gk schema.GroupKind) bool { return isDefinition(gk) || isManaged(gk) }

// SetWebhookService sets the address of the runtime's webhooks, and the CA bundle (PEM) that verifies it.
// Without a bundle the API server cannot call the runtime.
func (o *Objects) SetWebhookService(program Service, authorities []byte) {
	fingerprint := CABundleHash(authorities)
	if fingerprint != "" {
		o.service, o.caBundle = program, authorities
	}
	for i := range o.want {
		d := &o.want[i]
		if d.CallsRuntime = d.CallsRuntime && fingerprint != ""; d.CallsRuntime {
			d.CABundleHash = fingerprint + " " + program.Name
		}
	}
}

// Service returns the address of the runtime's webhooks.
func (o *Objects) Service() Service { return o.service }

// CABundle returns the CA bundle of the objects that make the API server call the
// runtime, in PEM.
func (o *Objects) CABundle() []byte { return o.caBundle }

// CABundleHashOf returns the hash of the CA bundle in the record of an object.
func CABundleHashOf(trusts string) string {
	fingerprint, _, _ := strings.Cut(trusts, " ")
	return fingerprint
}

// CallsRuntime reports whether any of the objects makes the API server call the runtime
// of the package.
func (o *Objects) CallsRuntime() bool {
	return slices.ContainsFunc(o.want, func(d plan.Desired) bool { return d.CallsRuntime })
}

// CABundleHash returns a hash of a CA bundle, or "" if it is empty.
func CABundleHash(authorities []byte) string {
	if len(authorities) == 0 {
		return ""
	}
	sum := sha256.Sum256(authorities)
	return "sha256:" + hex.EncodeToString(sum[:16])
}

// Desired returns the objects as desired objects of a plan.
func (o *Objects) Desired() []plan.Desired { return o.want }

// Refs returns the references of the objects, in the order of the package.
func (o *Objects) Refs() []plan.Ref {
	refs := make([]plan.Ref, len(o.want))
	for i, d := range o.want {
		refs[i] = d.Ref
	}
	return refs
}

// Content returns the canonical JSON of an object in the form that is installed.
func (o *Objects) Content(ref plan.Ref) ([]byte, error) {
	content, ok := o.content[ref]
	if !ok {
		return nil, fmt.Errorf("%s %s is not an object of the package", ref.Kind, ref.Name)
	}
	return content()
}

// Definitions returns the number of definitions among the objects.
func (o *Objects) Definitions() int { return len(o.definitions) }

// Missing returns the CRDs whose kinds are not served, ordered by name.
func (o *Objects) Missing(served map[schema.GroupResource]bool) []string {
	var missing []string
	for name, resource := range o.definitions {
		if !served[resource] {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return missing
}

// installable returns an object in the form that current API servers accept: CRDs of v1beta1 are converted to
// v1, MRDs to the CRDs that they define, and objects that call the runtime get its address and CA bundle.
func (o *Objects) installable(object xpkg.Object) ([]byte, error) {
	raw, err := object.JSON()
	if err != nil {
		return nil, err
	}
	switch gk := object.GVK.GroupKind(); {
	case isManaged(gk):
		raw, err = crd.FromMRD(raw)
	case isDefinition(gk) && object.GVK.Version == "v1beta1":
		raw, err = crd.FromV1Beta1(raw)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case object.IsWebhookConfiguration():
		return withWebhooks(raw, o.service, o.caBundle)
	case object.CallsRuntime():
		return withConversion(raw, o.service, o.caBundle)
	}
	return raw, nil
}

// Overlay merges maps; later ones take precedence. It returns nil if the result is empty.
func Overlay(layers ...map[string]string) map[string]string {
	var out map[string]string
	for _, m := range layers {
		for k, v := range m {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}
