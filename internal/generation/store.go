package generation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

const (
	// Label marks the ControllerRevisions that are generations. Its value is the number.
	Label = "xpkg.dev/generation"
	// annotationHealthy with the value "true" marks a generation whose packages were all healthy.
	annotationHealthy = "xpkg.dev/healthy"
	// Kept is the number of generations that are kept.
	Kept = 50
)

// List returns the generations in a namespace, or in all of them if it is empty, newest first. Other objects with the
// label are left out.
func List(ctx context.Context, c client.Reader, namespace string) ([]Generation, error) {
	var list appsv1.ControllerRevisionList
	if err := c.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{Label}); err != nil {
		return nil, err
	}
	var out []Generation
	for _, r := range list.Items {
		g := Generation{Number: r.Revision, Healthy: r.Annotations[annotationHealthy] == "true"}
		if json.Unmarshal(r.Data.Raw, &g.Content) == nil && g.Number > 0 {
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b Generation) int { return cmp.Compare(b.Number, a.Number) })
	return out, nil
}

// Store writes the generations in a namespace.
type Store struct {
	Client    client.Client
	Namespace string
}

func (s Store) object(number int64) *appsv1.ControllerRevision {
	n := strconv.FormatInt(number, 10)
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace, Name: "xpkg-generation-" + n, Labels: map[string]string{Label: n},
		},
		Revision: number,
	}
}

// Create stores a generation. It fails with AlreadyExists if another manager has stored one with this number.
func (s Store) Create(ctx context.Context, g Generation) error {
	raw, err := json.Marshal(g.Content)
	if err != nil {
		return err
	}
	o := s.object(g.Number)
	o.Data = runtime.RawExtension{Raw: raw}
	if g.Healthy {
		o.Annotations = map[string]string{annotationHealthy: "true"}
	}
	return s.Client.Create(ctx, o, client.FieldOwner(plan.FieldManager))
}

// MarkHealthy records that all packages of a generation have been healthy.
func (s Store) MarkHealthy(ctx context.Context, number int64) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, annotationHealthy)
	err := s.Client.Patch(
		ctx, s.object(number), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(plan.FieldManager),
	)
	return client.IgnoreNotFound(err)
}

// Delete deletes a generation if it exists.
func (s Store) Delete(ctx context.Context, number int64) error {
	return client.IgnoreNotFound(s.Client.Delete(ctx, s.object(number)))
}
