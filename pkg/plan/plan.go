// Package plan computes the changes that make the objects of a package revision exist in a cluster, or the reasons
// why they are refused.
//
// It is pure: it maps desired objects, the metadata of live objects, and the owner to a Plan, and reads and
// writes nothing. A plan with a refusal is not carried out at all: it applies to all objects or none
// (packages guide, "Provider Packages").
//
// Live objects are read as metadata. An annotation on each object contains the digest of the content that was last
// written. It determines whether the content must be written, so schemas of many megabytes are neither read nor held
// in memory.
package plan

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// ContentDigestAnnotation contains the digest of the content that was last written to an object, computed
	// over all fields that the package specifies.
	ContentDigestAnnotation = "xpkg.dev/content-digest"
	// CABundleHashAnnotation contains the hash of the CA bundle and of the runtime's address that were last written to an
	// object that calls the runtime of its package.
	CABundleHashAnnotation = "xpkg.dev/ca-bundle-hash"
	// ManagerAnnotation marks the CRDs that the package manager installs for itself. Packages cannot become
	// their owners.
	ManagerAnnotation = "xpkg.dev/package-manager"
	// FieldManager is the field manager of all writes.
	FieldManager = "xpkg"
	// CrossplaneFieldManager is the field manager of Crossplane's own writes.
	CrossplaneFieldManager = "crossplane"
)

// Ref names one object. Namespace is empty for a cluster-scoped object, as are all objects of packages.
type Ref struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
}

// GroupVersionKind returns the type of the object.
func (r Ref) GroupVersionKind() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// Compare orders references by kind, version, namespace and name.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(
		cmp.Compare(r.Kind, o.Kind), cmp.Compare(r.APIVersion, o.APIVersion), cmp.Compare(r.Namespace, o.Namespace),
		cmp.Compare(r.Name, o.Name),
	)
}

// Desired is an object of a package.
type Desired struct {
	Ref         Ref
	Labels      map[string]string
	Annotations map[string]string
	// Digest is "sha256:…" over the canonical content of the object, except for its CA bundle.
	Digest string
	// CallsRuntime reports whether the object makes the API server call the runtime of the package, and therefore
	// contains a CA bundle.
	CallsRuntime bool
	// CABundleHash is the hash of the CA bundle and of the runtime's address. Leave it empty in a dry run; the live value
	// is then accepted.
	CABundleHash string
}

// Live is the metadata of an object that exists.
type Live struct {
	Ref             Ref
	UID             types.UID
	ResourceVersion string
	// Generation is incremented by the API server with each change of the object's content, but not with changes of its
	// metadata or status.
	Generation  int64
	Deleting    bool
	Labels      map[string]string
	Annotations map[string]string
	Owners      []metav1.OwnerReference
	// OthersWrote reports whether a field manager other than FieldManager has written the object's content,
	// other than metadata and status.
	OthersWrote bool
	// CrossplaneWrote reports whether CrossplaneFieldManager is one of them.
	CrossplaneWrote bool
	// ManagedLabels and ManagedAnnotations are keys that FieldManager has written. Keys that the package no longer
	// contains are removed.
	ManagedLabels      []string
	ManagedAnnotations []string
}

// Written is the record of an object's last write.
type Written struct {
	UID        types.UID
	Generation int64
}

// Action is the reason for a write.
type Action string

// Actions of a plan.
const (
	// Create creates an object that does not exist.
	Create Action = "create"
	// Update updates the content of an object of this revision.
	Update Action = "update"
	// Adopt takes control of an existing object without a controller.
	Adopt Action = "adopt"
	// TakeOver moves control from a revision to its package.
	TakeOver Action = "take over"
	// Own adds an owner reference without control, so that the object exists as long as the package.
	Own Action = "own"
	// Release gives up control and keeps ownership.
	Release Action = "release"
	// Correct restores content that another client has changed.
	Correct Action = "correct"
	// Delete is the garbage collection of an object whose only owner is the deleted package.
	Delete Action = "delete"
	// Leave keeps an object of the deleted package that has another owner.
	Leave Action = "leave"
)

// Change is one write.
type Change struct {
	Action Action `json:"action"`
	Ref    Ref    `json:"object"`
	// MetadataOnly reports whether the content is up to date. The write then replaces the owners, sets or
	// removes the labels and annotations of the change, and keeps all others.
	MetadataOnly bool `json:"metadataOnly,omitempty"`
	// UID and ResourceVersion are preconditions of the write. Both are empty
	// for Create.
	UID             types.UID `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
	// Labels, Annotations and Owners are the whole metadata after the write,
	// unless it is MetadataOnly.
	Labels      map[string]string       `json:"labels,omitempty"`
	Annotations map[string]string       `json:"annotations,omitempty"`
	Owners      []metav1.OwnerReference `json:"owners,omitempty"`
	// RemoveLabels and RemoveAnnotations are keys, in order, that a MetadataOnly write removes.
	RemoveLabels      []string `json:"removeLabels,omitempty"`
	RemoveAnnotations []string `json:"removeAnnotations,omitempty"`
	// Migrations are the migrations of custom resources before the write: of the CRD, or of those of an XRD or MRD.
	Migrations []StorageMigration `json:"migrations,omitempty"`
}

// Cause is the kind of a refusal.
type Cause string

// Causes of refusals.
const (
	// ForeignOwner is an object that belongs to another owner.
	ForeignOwner Cause = ""
	// Deleting is an object that is being deleted. It is the only temporary cause.
	Deleting Cause = "Deleting"
	// ImmutableField is a change of an immutable field.
	ImmutableField Cause = "ImmutableField"
	// StoredVersionInUse is a CRD that drops a version in which objects can be stored.
	StoredVersionInUse Cause = "StoredVersionInUse"
	// NameTaken is a CRD, XRD or MRD that the API server would not serve.
	NameTaken Cause = "NameTaken"
	// AggregatedAPI is a CRD, XRD or MRD with a version that an aggregated API serves.
	AggregatedAPI Cause = "AggregatedAPI"
	// NoServedVersion is a CRD that serves none of its versions.
	NoServedVersion Cause = "NoServedVersion"
)

// Refusal is the reason why an object must not be written. A single refusal stops the plan.
type Refusal struct {
	Ref   Ref   `json:"object"`
	Cause Cause `json:"cause,omitempty"`
	// Holder is the controller of an object that belongs to another owner, as "Kind/name".
	Holder string `json:"holder,omitempty"`
	Reason string `json:"reason"`
	// Fix is the remedy for this object; it may be empty.
	Fix string `json:"fix,omitempty"`
}

// OnlyDeleting reports whether all refusals are of objects that are being deleted.
func OnlyDeleting(refusals []Refusal) bool {
	return !slices.ContainsFunc(refusals, func(r Refusal) bool { return r.Cause != Deleting })
}

// Plan is an ordered list of changes, or of the reasons why there are none.
type Plan struct {
	Changes  []Change  `json:"changes,omitempty"`
	Refusals []Refusal `json:"refusals,omitempty"`
	// Unchanged counts the objects that need no write.
	Unchanged int `json:"unchanged"`
	// Judgements are the effects of the changes on custom resources, ordered by CRD: of those that can affect some.
	Judgements []Judgement `json:"judgements,omitempty"`
}

// IsZero reports whether the plan changes, refuses and counts nothing.
func (p Plan) IsZero() bool { return len(p.Changes) == 0 && len(p.Refusals) == 0 && p.Unchanged == 0 }

// Hold splits the plan into the changes that can be carried out now, and the changes of webhook
// configurations, which wait until the runtime of the package serves. Without a response from a webhook, the
// API server rejects requests.
func (p Plan) Hold() (now, held Plan) {
	now = Plan{Refusals: p.Refusals, Unchanged: p.Unchanged, Judgements: p.Judgements}
	for _, c := range p.Changes {
		if IsWebhookConfiguration(c.Ref) {
			held.Changes = append(held.Changes, c)
		} else {
			now.Changes = append(now.Changes, c)
		}
	}
	return now, held
}

// IsWebhookConfiguration reports whether an object is a configuration of admission webhooks.
func IsWebhookConfiguration(r Ref) bool { return rank(r.Kind) == webhookRank }

// webhookRank is the rank of webhook configurations, the last one.
const webhookRank = 4

// DefinitionKind is the kind of CRDs. The API server deletes the custom resources of a CRD with it.
const DefinitionKind = "CustomResourceDefinition"

// DefinitionRef returns the reference of the CRD with a name.
func DefinitionRef(name string) Ref {
	return Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: DefinitionKind, Name: name}
}

// rank orders kinds: CRDs precede the objects that use them, and webhook configurations, which can block other
// writes, come last.
func rank(kind string) int {
	switch kind {
	case DefinitionKind:
		return 0
	case "CompositeResourceDefinition", "ManagedResourceDefinition":
		return 1
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		return webhookRank
	case "ClusterRoleBinding", "RoleBinding":
		// A role must exist before its binding.
		return 3
	}
	return 2
}

// Stages returns the changes in stages, which are carried out one after the other.
func (p Plan) Stages() [][]Change {
	var stages [][]Change
	for i, c := range p.Changes {
		if i == 0 || rank(c.Ref.Kind) != rank(p.Changes[i-1].Ref.Kind) {
			stages = append(stages, nil)
		}
		last := len(stages) - 1
		stages[last] = append(stages[last], c)
	}
	return stages
}

func (p *Plan) sort() {
	slices.SortFunc(p.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(rank(a.Ref.Kind), rank(b.Ref.Kind)), a.Ref.Compare(b.Ref))
	})
	slices.SortFunc(p.Refusals, func(a, b Refusal) int { return a.Ref.Compare(b.Ref) })
}
