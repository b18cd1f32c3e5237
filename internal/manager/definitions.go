package manager

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/apis/crds"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/plan"
)

// ErrForeignControlPlane is the failure of a cluster whose package API belongs
// to another package manager.
var ErrForeignControlPlane = failure.Register(failure.Code{
	Name: "ForeignControlPlane", Class: failure.Conflict,
	Cause: "The cluster already has the package API of another package manager, which would work on the same objects.",
	Fix:   "Use a cluster without it, or start the manager with --take-over once the other package manager is stopped for good.",
})

// Definitions makes sure that the cluster serves the kinds that the manager
// works with, and returns when it does.
//
// The package API is the manager's own and is kept up to date. One that somebody
// else installed is left alone and refused, unless takeOver is set. The kinds of
// composition belong to Crossplane: where the cluster does not have one, a
// permissive definition is installed in its place, so that Configurations can be
// installed without it. The names of those are returned.
func Definitions(ctx context.Context, cluster *apply.Cluster, takeOver bool) (permissive []string, err error) {
	own, err := crds.Packages()
	if err != nil {
		return nil, err
	}
	foreign, err := crds.Composition()
	if err != nil {
		return nil, err
	}
	set, err := definitionSet(append(append([]*apiextensionsv1.CustomResourceDefinition{}, own...), foreign...))
	if err != nil {
		return nil, err
	}
	live, err := cluster.Metadata(ctx, set.refs())
	if err != nil {
		return nil, err
	}
	var p plan.Plan
	for i, d := range set.want {
		l, exists := live[d.Ref]
		optional := i >= len(own)
		switch {
		case !exists:
			p.Changes = append(p.Changes, plan.Change{Action: plan.Create, Ref: d.Ref, Labels: d.Labels, Annotations: overlay(d.Annotations, map[string]string{plan.ContentAnnotation: d.Digest})})
			if optional {
				permissive = append(permissive, d.Ref.Name)
			}
		case l.Annotations[plan.ContentAnnotation] == "" && optional:
			// It is Crossplane's own.
		case l.Annotations[plan.ContentAnnotation] == "" && !takeOver:
			return nil, ErrForeignControlPlane.New(nil, "CustomResourceDefinition %s was not installed by xpkg", d.Ref.Name)
		case l.Annotations[plan.ContentAnnotation] != d.Digest:
			p.Changes = append(p.Changes, plan.Change{
				Action: plan.Update, Ref: d.Ref, UID: l.UID, ResourceVersion: l.ResourceVersion, Owners: l.Owners,
				Labels: overlay(l.Labels, d.Labels), Annotations: overlay(l.Annotations, d.Annotations, map[string]string{plan.ContentAnnotation: d.Digest}),
			})
		}
	}
	if _, err := cluster.Run(ctx, p, set.content); err != nil {
		return nil, fmt.Errorf("install the package API: %w", err)
	}
	return permissive, waitServed(ctx, cluster, set)
}

// definitionSet gives definitions the form in which plans are carried out.
func definitionSet(all []*apiextensionsv1.CustomResourceDefinition) (*objects, error) {
	set := &objects{bytes: map[plan.Ref][]byte{}, kinds: map[string]schema.GroupResource{}}
	for _, crd := range all {
		raw, err := json.Marshal(crd)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(raw)
		d := plan.Desired{
			Ref:    plan.Ref{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: crd.Name},
			Labels: crd.Labels, Annotations: crd.Annotations, Digest: "sha256:" + hex.EncodeToString(sum[:]),
		}
		set.want = append(set.want, d)
		set.bytes[d.Ref] = raw
		set.kinds[crd.Name] = schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}
	}
	return set, nil
}

func waitServed(ctx context.Context, cluster *apply.Cluster, set *objects) error {
	tick := time.NewTicker(establishedPoll)
	defer tick.Stop()
	for {
		missing, err := set.missing(ctx, cluster)
		if err != nil || len(missing) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
