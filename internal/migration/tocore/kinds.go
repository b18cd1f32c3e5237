package tocore

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// keptKinds is the name of the ManagedResourceActivationPolicy that makes core keep the active kinds.
const keptKinds = "xpkg-active-kinds"

// activeKinds returns the CRDs of the Providers of which some kinds are inactive: core activates no kind of a package
// with the capability safe-start unless a policy does, and updates the CRDs of active kinds only.
func (s *snapshot) activeKinds() []string {
	crds := map[string]bool{}
	for _, f := range s.families {
		for _, rev := range f.Revisions {
			if f.PackageKind() == v1.ProviderKind && revision.IsActive(rev) && revision.IsSafeStart(rev) {
				maps.Copy(crds, revision.WrittenDefinitions(rev.RevisionStatus().ObjectRefs))
			}
		}
	}
	return slices.Sorted(maps.Keys(crds))
}

// kindsSteps returns the step that makes core keep the active kinds active, if it is needed.
func (m *mover) kindsSteps(ctx context.Context, s *snapshot) ([]*migration.Step, error) {
	wanted := s.activeKinds()
	live, served, err := m.readKeptKinds(ctx)
	if err != nil || !served || s.coreManages() {
		return nil, err
	}
	kept := state.PolicyOf(live).Patterns
	missing := slices.DeleteFunc(wanted, func(crd string) bool { return slices.Contains(kept, crd) })
	if len(missing) == 0 {
		return nil, nil
	}
	return []*migration.Step{{
		Title: "Keep the active kinds active",
		Details: []string{fmt.Sprintf("The ManagedResourceActivationPolicy %s gets the CRDs of %s.", keptKinds,
			wording.Count(len(missing), "active kind"))},
		Run: func(ctx context.Context, _ migration.Report) error {
			live, _, err := m.readKeptKinds(ctx)
			if err != nil {
				return err
			}
			all := append(state.PolicyOf(live).Patterns, missing...)
			slices.Sort(all)
			if err := unstructured.SetNestedStringSlice(live.Object, slices.Compact(all), "spec", "activate"); err != nil {
				return err
			}
			if live.GetResourceVersion() == "" {
				return m.Client.Create(ctx, live)
			}
			return m.Client.Update(ctx, live)
		},
	}}, nil
}

// readKeptKinds reads the policy, and reports whether the cluster serves policies. A policy that does not exist is
// returned without a spec.
func (m *mover) readKeptKinds(ctx context.Context) (policy *unstructured.Unstructured, served bool, err error) {
	policy = &unstructured.Unstructured{}
	policy.SetGroupVersionKind(state.PolicyGVK)
	policy.SetName(keptKinds)
	err = m.Client.Get(ctx, client.ObjectKey{Name: keptKinds}, policy)
	switch {
	case apimeta.IsNoMatchError(err):
		return policy, false, nil
	case apierrors.IsNotFound(err):
		return policy, true, nil
	case err != nil:
		return nil, false, fmt.Errorf("read the policy %s: %w", keptKinds, err)
	}
	return policy, true, nil
}
