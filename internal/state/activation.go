package state

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/apiextensions/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// The kinds of the objects that decide about the kinds of Providers, in versions that every cluster with a manager
// serves.
var (
	DefinitionGVK  = v1alpha1.GroupVersion.WithKind(v1alpha1.ManagedResourceDefinitionKind)
	PolicyGVK      = v1alpha1.GroupVersion.WithKind(v1alpha1.ManagedResourceActivationPolicyKind)
	CompositionGVK = schema.GroupVersion{Group: v1alpha1.Group, Version: "v1"}.WithKind("Composition")
)

// Kinds selects the active kinds of Providers. The zero value selects all kinds.
type Kinds struct {
	// Reader reads policies, revisions and Compositions.
	Reader client.Reader
	// Metadata returns the metadata of the CRDs that exist.
	Metadata func(context.Context, []plan.Ref) (map[plan.Ref]plan.Live, error)
	// InUse returns which of some CRDs have custom resources, or may have some.
	InUse func(ctx context.Context, crds []string) (map[string]bool, error)
	// Default is the choice for packages without one, a value of [activation.AnnotationKinds]; nil means the one that the
	// manager announces in the Lock. Empty means all kinds of a Provider that a user installed, and the kinds that are
	// used of one that was installed as a dependency.
	Default *string
	// Planned are uses of packages that are not installed yet.
	Planned []activation.Use
}

// With returns the selection with more planned uses.
func (k Kinds) With(planned ...activation.Use) Kinds {
	k.Planned = append(slices.Clone(k.Planned), planned...)
	return k
}

// ChoiceOf returns which kinds of a Provider are wanted. It fails with InvalidKinds.
func (k Kinds) ChoiceOf(ctx context.Context, p v1.Package) (activation.Choice, error) {
	value := p.GetAnnotations()[activation.AnnotationKinds]
	isImplied := value == ""
	if isImplied {
		var err error
		if value, err = k.defaultChoice(ctx); err != nil {
			return activation.Choice{}, err
		}
	}
	switch {
	case value != "":
	case graph.IsAutoInstalled(p):
		value = activation.Used
	default:
		value = activation.All
	}
	choice, err := activation.ParseChoice(value)
	choice.Implied = isImplied
	return choice, inAnnotation(err, p, activation.AnnotationKinds)
}

// inAnnotation adds to an error which annotation of which package is malformed.
func inAnnotation(err error, p v1.Package, key string) error {
	if err == nil {
		return nil
	}
	return activation.ErrPattern.New(err, "the annotation %s of %s cannot be read", key, v1.ObjectName(p.PackageKind(), p.GetName()))
}

// defaultChoice returns the choice for packages without one.
func (k Kinds) defaultChoice(ctx context.Context) (string, error) {
	if k.Default != nil {
		return *k.Default, nil
	}
	lock, err := k.lock(ctx)
	return lock.Annotations[activation.AnnotationKinds], err
}

func (k Kinds) lock(ctx context.Context) (v1beta1.Lock, error) {
	var lock v1beta1.Lock
	if err := k.Reader.Get(ctx, client.ObjectKey{Name: v1beta1.LockName}, &lock); client.IgnoreNotFound(err) != nil {
		return lock, fmt.Errorf("read the Lock: %w", err)
	}
	return lock, nil
}

// Select returns the active kinds of a package, or nil if it is no Provider. The revision of the content records what
// it has written, which a cache may not show yet, and which kinds its runtime needs; it can be nil. Select fails with
// InvalidKinds for malformed annotations of the package.
func (k Kinds) Select(
	ctx context.Context, p v1.Package, pkg *xpkg.Package, rev v1.PackageRevision,
) (*activation.Selection, error) {
	if k.Reader == nil || pkg.Meta.Kind != xpkg.Provider {
		return nil, nil
	}
	offered, err := activation.OfferedBy(pkg)
	if err != nil {
		return nil, err
	}
	needs := activation.Needs{Safe: pkg.Meta.HasCapability(xpkg.CapabilitySafeStart)}
	if needs.Choice, err = k.ChoiceOf(ctx, p); err != nil {
		return nil, err
	}
	if !needs.Safe || needs.Choice.All {
		return needs.Select(offered), nil
	}
	if needs.Deactivate, err = activation.ParsePatterns(p.GetAnnotations()[activation.AnnotationDeactivate]); err != nil {
		return nil, inAnnotation(err, p, activation.AnnotationDeactivate)
	}
	if needs.Policies, err = k.policies(ctx); err != nil {
		return nil, err
	}
	if needs.Uses, err = k.uses(ctx, p); err != nil {
		return nil, err
	}
	if rev != nil {
		needs.Crashed = revision.CrashKinds(rev)
	}
	if needs.Before, err = k.before(ctx, p, needs.Select(offered).Inactive()); err != nil {
		return nil, err
	}
	maps.Copy(needs.Before, revision.WrittenDefinitions(revision.CurrentObjects(rev)))
	out := needs.Select(offered)
	if len(out.Dropped) == 0 {
		return out, nil
	}
	if needs.InUse, err = k.InUse(ctx, out.Dropped); err != nil {
		return nil, err
	}
	return needs.Select(offered), nil
}

// List lists the objects of one of these kinds in the order of their names. A cluster that does not serve the kind has
// none. The caller must not change them.
func List(ctx context.Context, c client.Reader, gvk schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	var all unstructured.UnstructuredList
	all.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	err := c.List(ctx, &all, client.UnsafeDisableDeepCopy)
	if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("list objects of the kind %s: %w", gvk.Kind, err)
	}
	slices.SortFunc(all.Items, func(a, b unstructured.Unstructured) int {
		return strings.Compare(a.GetName(), b.GetName())
	})
	return all.Items, nil
}

// policies returns the policies that are not paused.
func (k Kinds) policies(ctx context.Context) ([]activation.Policy, error) {
	all, err := List(ctx, k.Reader, PolicyGVK)
	var out []activation.Policy
	for _, o := range all {
		if o.GetAnnotations()[v1.AnnotationPaused] != "true" && o.GetDeletionTimestamp() == nil {
			out = append(out, PolicyOf(&o))
		}
	}
	return out, err
}

// PolicyOf returns a ManagedResourceActivationPolicy.
func PolicyOf(o *unstructured.Unstructured) activation.Policy {
	patterns, _, _ := unstructured.NestedStringSlice(o.Object, "spec", "activate")
	return activation.Policy{Name: o.GetName(), Patterns: patterns}
}

// uses returns the kinds that Compositions use: those of active Configurations, as their revisions record them also
// before they are installed, and the others in the cluster; and those without which a composition failed.
func (k Kinds) uses(ctx context.Context, p v1.Package) ([]activation.Use, error) {
	out := slices.Clone(k.Planned)
	lock, err := k.lock(ctx)
	if err != nil {
		return nil, err
	}
	dependents := dependentsOf(p, lock.Packages)
	revisions := v1.NewPackage(v1.ConfigurationKind).NewRevisionList()
	if err := k.Reader.List(ctx, revisions, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list revisions: %w", err)
	}
	for _, rev := range revisions.Revisions() {
		if revision.IsActive(rev) {
			uses, _ := revision.UsesOf(rev)
			out = append(out, activation.Use{
				By: activation.ByConfiguration(rev.GetLabels()[v1.LabelPackage]), Kinds: uses.Kinds,
				Open: uses.Open && dependents[oci.RepositoryName(rev.RevisionSpec().Image)],
			})
		}
	}
	compositions, err := List(ctx, k.Reader, CompositionGVK)
	for _, o := range compositions {
		by := activation.ByComposition(o.GetName())
		if c := metav1.GetControllerOf(&o); c != nil && isPackage(*c) {
			by = activation.ByConfiguration(c.Name)
		}
		out = append(out, activation.Use{By: by, Kinds: activation.UsesOf(o.Object["spec"])})
	}
	if err != nil {
		return nil, err
	}
	failed, err := k.Failed(ctx)
	for _, f := range failed {
		out = append(out, f.Use)
	}
	return out, err
}

// dependentsOf returns the repositories of the packages that require a package, directly or indirectly: according to
// the Lock, and to the package itself, which the Lock may not list yet.
func dependentsOf(p v1.Package, locked []v1beta1.LockPackage) map[string]bool {
	out := map[string]bool{}
	next := append(graph.RequiredBy(p), oci.RepositoryName(p.PackageSpec().Package))
	own := next[len(next)-1]
	for len(next) > 0 {
		repository := next[0]
		next = next[1:]
		if out[repository] {
			continue
		}
		out[repository] = true
		for _, l := range locked {
			if slices.ContainsFunc(l.Dependencies, func(d v1beta1.Dependency) bool { return d.Package == repository }) {
				next = append(next, l.Source)
			}
		}
	}
	delete(out, own)
	return out
}

// UsesOf returns the kinds that the Compositions of a package use: those that its revision with a name records, or
// those of its content.
func UsesOf(pkg *xpkg.Package, revisions []v1.PackageRevision, name string) (activation.Uses, error) {
	for _, rev := range revisions {
		if uses, recorded := revision.UsesOf(rev); recorded && rev.GetName() == name {
			return uses, nil
		}
	}
	return activation.UsedBy(pkg)
}

// before returns which of some CRDs are active: they exist, and no other package controls them, or their definition is
// active, because a user activated it.
func (k Kinds) before(ctx context.Context, p v1.Package, crds []string) (map[string]bool, error) {
	out := map[string]bool{}
	if len(crds) == 0 {
		return out, nil
	}
	refs := make([]plan.Ref, len(crds))
	for i, name := range crds {
		refs[i] = plan.DefinitionRef(name)
	}
	live, err := k.Metadata(ctx, refs)
	if err != nil {
		return nil, err
	}
	for ref, l := range live {
		c := metav1.GetControllerOfNoCopy(&metav1.ObjectMeta{OwnerReferences: l.Owners})
		if !l.Deleting && (c == nil || c.Kind != p.PackageKind() || c.Name == p.GetName()) {
			out[ref.Name] = true
		}
	}
	definitions, err := List(ctx, k.Reader, DefinitionGVK)
	for _, o := range definitions {
		if IsActivated(&o) && o.GetDeletionTimestamp() == nil {
			out[o.GetName()] = true
		}
	}
	return out, err
}

// IsActivated reports whether a user, or another client, has set the state of a definition to Active. The manager sets
// it when the kind is active, which is no reason for that.
func IsActivated(o *unstructured.Unstructured) bool {
	if by, reduced, _ := unstructured.NestedBool(o.Object, "spec", byOther); reduced {
		return by
	}
	return IsActiveDefinition(o) && !slices.ContainsFunc(o.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager == plan.FieldManager && f.FieldsV1 != nil &&
			strings.Contains(f.FieldsV1.GetRawString(), `"f:state":{}`)
	})
}

// byOther is the field in which OnlyKinds keeps the result of IsActivated.
const byOther = "activatedByOther"

// IsActiveDefinition reports whether the state of a ManagedResourceDefinition is Active.
func IsActiveDefinition(o *unstructured.Unstructured) bool {
	state, _, _ := unstructured.NestedString(o.Object, "spec", "state")
	return state == v1alpha1.Active
}

// specDigest is the field in which OnlyKinds keeps the result of SpecDigest.
const specDigest = "digest"

// SpecDigest identifies the spec of a definition without its state.
func SpecDigest(o *unstructured.Unstructured) string {
	spec, _ := o.Object["spec"].(map[string]any)
	if digest, reduced := spec[specDigest].(string); reduced {
		return digest
	}
	rest := maps.Clone(spec)
	delete(rest, "state")
	raw, err := json.Marshal(rest)
	if err != nil {
		panic(err) // What was decoded from JSON always encodes.
	}
	return oci.DigestOf(raw).String()
}

// OnlyKinds reduces an object that decides about kinds to what Kinds reads, so that a cache does not hold its schemas
// and templates.
func OnlyKinds(o any) (any, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok { // Of some kinds, the metadata is cached too.
		if m, ok := o.(metav1.Object); ok {
			m.SetManagedFields(nil)
		}
		return o, nil
	}
	activated := IsActivated(u)
	u.SetManagedFields(nil)
	switch u.GetKind() {
	case DefinitionGVK.Kind:
		state, _, _ := unstructured.NestedString(u.Object, "spec", "state")
		u.Object["spec"] = map[string]any{"state": state, byOther: activated, specDigest: SpecDigest(u)}
	case CompositionGVK.Kind:
		delete(u.Object, "status")
		uses := []any{}
		for _, k := range activation.UsesOf(u.Object["spec"]) {
			uses = append(uses, map[string]any{"apiVersion": k.Group + "/v1", "kind": k.Kind})
		}
		u.Object["spec"] = uses
	}
	return u, nil
}
