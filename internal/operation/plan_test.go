package operation

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

// emptyCluster has no objects.
type emptyCluster struct{ planner.Cluster }

func (emptyCluster) Identity(context.Context) (types.UID, error) { return "cluster", nil }

func (emptyCluster) Metadata(context.Context, []plan.Ref) (map[plan.Ref]plan.Live, error) {
	return nil, nil
}

func (emptyCluster) OwnedContent(context.Context) (owned apply.Owned, unlisted []plan.Ref, err error) {
	return nil, nil, nil
}

func (emptyCluster) Preflight(_ context.Context, p plan.Plan, _ apply.Content, _ apply.Breaks) (plan.Plan, error) {
	return p, nil
}

func (emptyCluster) ClusterScoped(context.Context) (map[schema.GroupResource]bool, error) {
	return nil, nil
}

// oneContent has one content under every name.
type oneContent struct{ planner.Source }

func (oneContent) Resolve(_ context.Context, o fetch.Origin, _ time.Duration) (oci.Digest, error) {
	return oci.DigestOf([]byte(o.Ref.String())), nil
}

func (oneContent) Verify(context.Context, fetch.Origin, oci.Digest, bool) ([]signature.Verdict, error) {
	return nil, nil
}

func (oneContent) Read(context.Context, fetch.Origin, oci.Digest, bool) (*xpkg.Package, error) {
	const meta = "apiVersion: meta.pkg.crossplane.io/v1\nkind: Configuration\nmetadata: {name: boats}\n"
	return xpkg.Read([]byte(meta), xpkg.ReadOptions{})
}

// A step that is refused because of other packages does not end the planning of the others, and stays refused, also when the plans of the
// steps after it are saved.
func TestARefusedStepStaysRefused(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err == nil {
		err = corev1.AddToScheme(scheme)
	}
	if err != nil {
		t.Fatal(err)
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).Build()
	for _, pin := range []bool{false, true} {
		for first := range 3 {
			engine := engineOf(cluster, io.Discard)
			engine.Planner = &planner.Planner{
				Reader: cluster, Cluster: emptyCluster{}, Source: oneContent{}, Namespace: "crossplane-system",
			}
			var steps []*Step
			for _, name := range []string{"a", "b", "c"} {
				want := named(v1.ConfigurationKind, name)
				want.PackageSpec().Package = "registry.example.com/" + name + ":v1.0.0"
				steps = append(steps, &Step{Want: want})
			}
			planned := 0
			refused, err := Operation{Engine: engine, Options: planner.Options{Pin: pin}, Agree: func(p *planner.Plan) error {
				planned++
				if p.Package.Name == steps[first].Want.GetName() {
					return planner.ErrDependentsBroken.New(nil, "refused")
				}
				return nil
			}}.Plan(t.Context(), steps)
			if !errors.Is(err, planner.ErrDependentsBroken) || len(refused) != 1 || refused[0] != steps[first] || planned != 3 {
				t.Errorf("pinned %t, step %d: %d steps are refused of %d planned, %v", pin, first, len(refused), planned, err)
			}
		}
	}
}
