package controller

import (
	"context"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/xpkg-dev/xpkg/apis/crds"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// ErrForeignControlPlane is the failure of a cluster whose package API belongs
// to another package manager.
var ErrForeignControlPlane = errcode.Code{
	Name: "ForeignControlPlane", Class: errcode.Conflict,
	Cause: "The cluster already has the package API of another package manager, which would work on the same objects.",
	Fix:   "Use a cluster without it, or start the manager with --take-over once the other package manager is stopped for good.",
}

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
	set, err := desired.Definitions(append(append([]*apiextensionsv1.CustomResourceDefinition{}, own...), foreign...))
	if err != nil {
		return nil, err
	}
	live, err := cluster.Metadata(ctx, set.Refs())
	if err != nil {
		return nil, err
	}
	mark := map[string]string{plan.ManagerAnnotation: "true"}
	var p plan.Plan
	for i, d := range set.Desired() {
		l, exists := live[d.Ref]
		optional := i >= len(own)
		switch {
		case !exists:
			p.Changes = append(p.Changes, plan.Change{Action: plan.Create, Ref: d.Ref, Labels: d.Labels, Annotations: desired.Overlay(d.Annotations, mark, map[string]string{plan.ContentDigestAnnotation: d.Digest})})
			if optional {
				permissive = append(permissive, d.Ref.Name)
			}
		case l.Annotations[plan.ContentDigestAnnotation] == "" && optional:
			// It is Crossplane's own.
		case l.Annotations[plan.ContentDigestAnnotation] == "" && !takeOver:
			return nil, ErrForeignControlPlane.New(nil, "CustomResourceDefinition %s was not installed by xpkg", d.Ref.Name)
		case l.Annotations[plan.ContentDigestAnnotation] != d.Digest:
			p.Changes = append(p.Changes, plan.Change{
				Action: plan.Update, Ref: d.Ref, UID: l.UID, ResourceVersion: l.ResourceVersion, Owners: l.Owners,
				Labels: desired.Overlay(l.Labels, d.Labels), Annotations: desired.Overlay(l.Annotations, d.Annotations, mark, map[string]string{plan.ContentDigestAnnotation: d.Digest}),
			})
		}
	}
	if _, err := cluster.Run(ctx, p, set.Content); err != nil {
		return nil, fmt.Errorf("install the package API: %w", err)
	}
	return permissive, waitServed(ctx, cluster, set)
}

func waitServed(ctx context.Context, cluster *apply.Cluster, set *desired.Objects) error {
	tick := time.NewTicker(establishedPoll)
	defer tick.Stop()
	for {
		served, err := cluster.Served(ctx)
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
