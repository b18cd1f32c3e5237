// Package packageapi installs the CRDs of the package API, and restores them when another program
// changes them.
package packageapi

import (
	"context"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/xpkg-dev/xpkg/apis/crds"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// ErrForeignControlPlane is the code for a cluster whose package API belongs
// to another package manager.
var ErrForeignControlPlane = errcode.Code{
	Name: "ForeignControlPlane", Class: errcode.Conflict,
	Cause: "The cluster already has the package API of another package manager, which would work on the same objects.",
	Fix:   "Use a cluster without it, or run `xpkg bootstrap --apply --take-over` once the other package manager is stopped for good.",
}

// Installed is the result of Install.
type Installed struct {
	// Permissive are the names of the permissive CRDs that were created.
	Permissive []string

	// FirstGeneration reports that the manager owns the CRDs of the first generation of packages.
	FirstGeneration bool

	// verified are the CRDs of the package API whose content was compared.
	verified map[plan.Ref]plan.Written
}

// Options configure Install.
type Options struct {
	// TakeOver replaces the CRDs of another package manager.
	TakeOver bool
	// FirstGeneration installs the CRDs of the first generation of packages. Without it, they are only maintained in a
	// cluster in which a manager has installed them.
	FirstGeneration bool
}

// Install installs the CRDs that the manager needs, and returns once the API server serves them.
//
// The manager owns the CRDs of the package API and updates them. It fails with
// ErrForeignControlPlane if another program installed one of them, unless o.TakeOver is set. The
// kinds of composition belong to Crossplane: where they do not exist, Install creates permissive
// CRDs in their place, so that Configurations can be installed without Crossplane.
func Install(ctx context.Context, cluster *apply.Cluster, o Options) (Installed, error) {
	set, owned, err := definitions(true)
	if err != nil {
		return Installed{}, err
	}
	// One list shows which CRDs exist, those of the first generation included.
	live, err := cluster.Metadata(ctx, set.Refs())
	if err != nil {
		return Installed{}, err
	}
	firstGeneration := o.FirstGeneration
	if !firstGeneration {
		if firstGeneration, err = hasFirstGeneration(live); err != nil {
			return Installed{}, err
		}
	}
	if !firstGeneration {
		if set, owned, err = definitions(false); err != nil {
			return Installed{}, err
		}
	}
	specs, err := newSpecs(set)
	if err != nil {
		return Installed{}, err
	}
	contents, err := cluster.Labelled(
		ctx, apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), crds.LabelPackageAPI,
	)
	if err != nil {
		return Installed{}, err
	}
	installed := Installed{FirstGeneration: firstGeneration, verified: map[plan.Ref]plan.Written{}}
	var p plan.Plan
	for i, d := range set.Desired() {
		l, exists := live[d.Ref]
		optional := i >= owned
		written := l.Annotations[plan.ContentDigestAnnotation] != ""
		switch {
		case !exists:
			p.Changes = append(p.Changes, creation(d))
			if d.Labels[crds.LabelPermissive] == "true" {
				installed.Permissive = append(installed.Permissive, d.Ref.Name)
			}
		case optional && (!written || l.OthersWrote):
			// Crossplane installed it, or has replaced the permissive one.
		case !written && !o.TakeOver:
			return Installed{},
				ErrForeignControlPlane.New(nil, "CustomResourceDefinition %s was not installed by xpkg", d.Ref.Name)
		case optional && l.Annotations[plan.ContentDigestAnnotation] != d.Digest:
			p.Changes = append(p.Changes, restoration(d, l))
		case !optional:
			crd, exists := contents[d.Ref]
			if !exists { // An earlier version of the manager did not label it.
				if crd, exists, err = cluster.Object(ctx, d.Ref); err != nil {
					return Installed{}, err
				}
			}
			switch {
			case exists && specs.isWritten(d, crd):
				installed.verified[d.Ref] = plan.Written{UID: crd.UID, Generation: crd.Generation}
			case exists:
				p.Changes = append(p.Changes, restoration(d, crd.Live))
			}
		}
	}
	if _, err := cluster.Run(ctx, p, set.Content); err != nil {
		return Installed{}, fmt.Errorf("install the package API: %w", err)
	}
	return installed, waitServed(ctx, cluster, set)
}

// ownCRDs returns the CRDs that the manager owns.
func ownCRDs(firstGeneration bool) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	own, err := crds.Packages()
	if err != nil || !firstGeneration {
		return own, err
	}
	more, err := crds.FirstGeneration()
	return append(own, more...), err
}

// optionalCRDs returns the CRDs that are created unless another program has created them.
func optionalCRDs(firstGeneration bool) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	all, err := crds.Composition()
	if err != nil || !firstGeneration {
		return all, err
	}
	earlier, err := crds.EarlierStackDefinition()
	return append(all, earlier), err
}

// definitions returns the CRDs that the manager owns, followed by the optional ones, and the number of the former.
func definitions(firstGeneration bool) (set *desired.Objects, owned int, err error) {
	own, err := ownCRDs(firstGeneration)
	if err != nil {
		return nil, 0, err
	}
	optional, err := optionalCRDs(firstGeneration)
	if err != nil {
		return nil, 0, err
	}
	set, err = desired.Definitions(slices.Concat(own, optional))
	return set, len(own), err
}

// hasFirstGeneration reports whether a manager has installed the CRDs of the first generation, which the manager then
// maintains. CRDs of another package manager do not count, also while a migration replaces them.
func hasFirstGeneration(live map[plan.Ref]plan.Live) (bool, error) {
	all, err := crds.FirstGeneration()
	if err != nil {
		return false, err
	}
	set, err := desired.Definitions(all)
	if err != nil {
		return false, err
	}
	found := false
	for _, ref := range set.Refs() {
		l, exists := live[ref]
		if exists && l.Annotations[plan.ContentDigestAnnotation] == "" {
			return false, nil
		}
		found = found || exists
	}
	return found, nil
}

// ownAnnotations returns the annotations that the manager writes to a CRD: the live ones, with its
// own.
func ownAnnotations(live map[string]string, d plan.Desired) map[string]string {
	return desired.Overlay(live, d.Annotations, map[string]string{
		plan.ManagerAnnotation: "true", plan.ContentDigestAnnotation: d.Digest,
	})
}

// creation returns the change that creates a CRD.
func creation(d plan.Desired) plan.Change {
	return plan.Change{Action: plan.Create, Ref: d.Ref, Labels: d.Labels, Annotations: ownAnnotations(nil, d)}
}

// restoration returns the change that replaces the content of a live CRD. The API server ignores
// the write if nothing differs.
func restoration(d plan.Desired, l plan.Live) plan.Change {
	return plan.Change{
		Action: plan.Update, Ref: d.Ref, UID: l.UID, ResourceVersion: l.ResourceVersion, Owners: l.Owners,
		Labels: desired.Overlay(l.Labels, d.Labels), Annotations: ownAnnotations(l.Annotations, d),
	}
}

// servedPoll is the pause between two checks of whether the API server serves the CRDs.
const servedPoll = 50 * time.Millisecond

func waitServed(ctx context.Context, cluster *apply.Cluster, set *desired.Objects) error {
	tick := time.NewTicker(servedPoll)
	defer tick.Stop()
	for {
		served, err := cluster.Served(ctx, 0)
		if err != nil || len(set.Missing(served)) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// Codes returns the error codes that this package defines, in alphabetical order.
func Codes() []errcode.Code {
	return []errcode.Code{
		ErrForeignControlPlane,
		ErrOverwritten,
	}
}
