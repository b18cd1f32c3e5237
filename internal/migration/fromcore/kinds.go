package fromcore

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/activation"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// inactiveKinds returns the numbers of inactive kinds by the names of their Providers: of the definitions that core has
// created and that have no CRD.
func (m *Migration) inactiveKinds(ctx context.Context, created []metav1.PartialObjectMetadata) (map[string]int, error) {
	if len(created) == 0 {
		return nil, nil
	}
	crds, _, err := m.list(ctx, schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"})
	if err != nil {
		return nil, err
	}
	exists := map[string]bool{}
	for _, crd := range crds {
		exists[crd.Name] = true
	}
	out := map[string]int{}
	for _, d := range created {
		if name := d.Labels[v1.LabelPackage]; name != "" && !exists[d.Name] {
			out[name]++
		}
	}
	return out, nil
}

// kindsStep makes Providers keep the kinds inactive that no policy has activated.
func (m *Migration) kindsStep(s *snapshot) *migration.Step {
	names := slices.Sorted(maps.Keys(s.definitions.inactive))
	step := &migration.Step{Title: "Keep inactive kinds inactive", Done: len(names) == 0}
	for _, name := range names {
		step.Details = append(step.Details, fmt.Sprintf("provider/%s gets the annotation %s=%s: it has %s", name,
			activation.AnnotationKinds, activation.Policies, wording.Count(s.definitions.inactive[name], "inactive kind")))
	}
	step.Run = func(ctx context.Context, _ migration.Report) error {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"annotations": map[string]string{activation.AnnotationKinds: activation.Policies},
		}})
		if err != nil {
			return err
		}
		for _, name := range names {
			p := v1.NewPackage(v1.ProviderKind)
			p.SetName(name)
			err := m.Client.Patch(ctx, p, client.RawPatch("application/merge-patch+json", patch), fieldManager)
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("annotate provider/%s: %w", name, err)
			}
		}
		return nil
	}
	return step
}
