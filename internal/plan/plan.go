// Package plan decides what has to change in a cluster so that it holds what a
// package revision wants, and whether that may happen at all.
//
// It is pure: the desired objects, the metadata of the live ones and who asks go
// in, and a Plan comes out. Nothing is read or written here. A plan that holds a
// refusal is not carried out in part: all objects or none (packages guide,
// "Provider Packages").
//
// Live objects are known by their metadata alone. Whether the content of an
// object must be written follows from the digest of the content that was last
// written, which is kept on the object as an annotation, so that schemas of many
// megabytes are neither read nor held in memory.
package plan

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// ContentAnnotation holds the digest of the content that was last written
	// to an object, over everything that the package says about it.
	ContentAnnotation = "xpkg.dev/content"
	// FieldManager is the name under which every write is made.
	FieldManager = "xpkg"
)

// Ref names one cluster-scoped object.
type Ref struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// Compare orders references by kind, version and name.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(cmp.Compare(r.Kind, o.Kind), cmp.Compare(r.APIVersion, o.APIVersion), cmp.Compare(r.Name, o.Name))
}

// Desired is what a package says about one object.
type Desired struct {
	Ref         Ref
	Labels      map[string]string
	Annotations map[string]string
	// Digest is "sha256:…" over the canonical content of the object.
	Digest string
}

// Live is the metadata of an object that exists.
type Live struct {
	Ref             Ref
	UID             types.UID
	ResourceVersion string
	Deleting        bool
	Labels          map[string]string
	Annotations     map[string]string
	Owners          []metav1.OwnerReference
	// ManagedLabels and ManagedAnnotations are the keys that FieldManager has
	// written earlier. Those that the package no longer names are removed.
	ManagedLabels      []string
	ManagedAnnotations []string
}

// Action says why an object is written.
type Action string

// The actions of a plan.
const (
	// Create makes an object that does not exist.
	Create Action = "create"
	// Update brings an object of this revision to the content of the package.
	Update Action = "update"
	// Adopt takes an object that exists and that nobody controls.
	Adopt Action = "adopt"
	// TakeOver moves control from another revision of the same package.
	TakeOver Action = "take over"
	// Own adds a plain owner reference, so that the object lives as long as any
	// revision of the package.
	Own Action = "own"
	// Release gives up control and stays an owner.
	Release Action = "release"
)

// Change is one write.
type Change struct {
	Action Action `json:"action"`
	Ref    Ref    `json:"object"`
	// OwnersOnly says that the content is already right and only the owner
	// references are written.
	OwnersOnly bool `json:"ownersOnly,omitempty"`
	// UID and ResourceVersion are preconditions of the write. Both are empty
	// for Create.
	UID             types.UID `json:"uid,omitempty"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
	// Labels, Annotations and Owners are the whole metadata after the write.
	Labels      map[string]string       `json:"labels,omitempty"`
	Annotations map[string]string       `json:"annotations,omitempty"`
	Owners      []metav1.OwnerReference `json:"owners,omitempty"`
}

// Refusal says why an object may not be written. One refusal stops the plan.
type Refusal struct {
	Ref Ref `json:"object"`
	// Holder is who controls the object, as "Kind/name", or empty when the
	// object is being deleted.
	Holder string `json:"holder,omitempty"`
	Reason string `json:"reason"`
}

// Plan is an ordered list of changes, or of the reasons why there are none.
type Plan struct {
	Changes  []Change  `json:"changes,omitempty"`
	Refusals []Refusal `json:"refusals,omitempty"`
	// Unchanged counts the objects that need no write.
	Unchanged int `json:"unchanged"`
}

// rank orders kinds so that definitions come before what uses them, and what can
// block writes of others comes last.
func rank(kind string) int {
	switch kind {
	case "CustomResourceDefinition":
		return 0
	case "CompositeResourceDefinition", "ManagedResourceDefinition":
		return 1
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		return 3
	}
	return 2
}

func (p *Plan) sort() {
	slices.SortFunc(p.Changes, func(a, b Change) int {
		return cmp.Or(cmp.Compare(rank(a.Ref.Kind), rank(b.Ref.Kind)), a.Ref.Compare(b.Ref))
	})
	slices.SortFunc(p.Refusals, func(a, b Refusal) int { return a.Ref.Compare(b.Ref) })
}
