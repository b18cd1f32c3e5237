package planner_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/oci/remote"
	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// emptyCluster has no objects and no custom resources.
type emptyCluster struct{}

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

func (emptyCluster) CustomResources(context.Context, []string, bool) ([]planner.CustomResources, error) {
	return nil, nil
}

func (emptyCluster) Kinds(context.Context, string) ([]apply.ServedKind, error) { return nil, nil }

func (emptyCluster) ClusterScoped(context.Context) (map[schema.GroupResource]bool, error) {
	return map[schema.GroupResource]bool{}, nil
}

// offline is a package cache without a registry.
type offline struct{ *fakeContent }

var errUnreachable = errors.New("connection refused")

func (offline) Resolve(_ context.Context, o fetch.Origin, _ time.Duration) (oci.Digest, error) {
	return oci.Digest{}, remote.ErrRegistryUnavailable.New(errUnreachable, "%s", o.Ref)
}

// fakePlanner plans for a cluster with these objects.
func fakePlanner(t *testing.T, source planner.Source, objects ...client.Object) *planner.Planner {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	reader := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(
		&v1.Provider{}, &v1.ProviderRevision{},
	).Build()
	return &planner.Planner{Reader: reader, Cluster: emptyCluster{}, Source: source, Namespace: "crossplane-system"}
}

// An image that is rewritten while the new registry cannot be reached keeps its installed content,
// in the plan as in the manager.
func TestPlanKeepsTheInstalledContentOfARewrittenImageWithoutARegistry(t *testing.T) {
	s := newFakeContent()
	const ref = "registry.example.com/boats:v1"
	digest := s.put(ref, provider("boats", "", crd("boats.test", "Boat", "one")))
	p := env.NewProvider("boats", ref)
	p.Status.CurrentIdentifier, p.Status.ResolvedPackage, p.Status.ResolvedDigest = ref, ref, digest.String()
	p.Status.CurrentRevision = "boats-111111111111"
	rewrite := &v1beta1.ImageConfig{ObjectMeta: metav1.ObjectMeta{Name: "mirror"}, Spec: v1beta1.ImageConfigSpec{
		MatchImages:  []v1beta1.ImageMatch{{Prefix: "registry.example.com"}},
		RewriteImage: &v1beta1.ImageRewrite{Prefix: "mirror.example.com"},
	}}
	got, err := fakePlanner(t, offline{s}, p, rewrite).Install(t.Context(), p, planner.Options{})
	if err != nil {
		t.Fatalf("the plan fails where the manager goes on: %v", err)
	}
	if got.Content.Digest != digest.String() || got.Content.Resolved != "registry.example.com/boats:v1@"+digest.String() {
		t.Errorf("planned with %+v, want the installed %s", got.Content, digest)
	}
	if !slices.ContainsFunc(got.Warnings, func(w string) bool { return strings.Contains(w, "connection refused") }) {
		t.Errorf("no warning names the cause: %q", got.Warnings)
	}
}

// A plan shows the permissions that a manager with --namespaced grants.
func TestPlanKnowsAManagerThatConfinesRuntimesToItsNamespace(t *testing.T) {
	s := newFakeContent()
	const ref = "registry.example.com/boats:v1"
	s.put(ref, provider("boats", "  annotations: {"+rbac.AnnotationPermissions+": secrets=namespace}\n"+
		`spec: {controller: {permissionRequests: [{apiGroups: [""], resources: [secrets], verbs: [list]}]}}`+"\n",
		crd("boats.test", "Boat", "one")))
	for scope, want := range map[string]bool{"": true, permission.ScopeNamespaced: false} {
		lock := &v1beta1.Lock{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.LockName, Annotations: map[string]string{
			permission.AnnotationScope: scope,
		}}}
		got, err := fakePlanner(t, s, lock).Install(t.Context(), env.NewProvider("boats", ref), planner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if allSecrets := len(got.Permissions.NeedsApproval) > 0; allSecrets != want {
			t.Errorf("with the scope %q the runtime reads the Secrets of all namespaces: %t, want %t", scope, allSecrets, want)
		}
	}
}

// A plan shows that a new version waits for the approval of its permissions, where the package or the manager requires
// that.
func TestPlanKnowsThatIncreasesNeedApproval(t *testing.T) {
	s := newFakeContent()
	const at = "registry.example.com/boats:"
	content := func(verbs string) string {
		return provider("boats", `spec: {controller: {permissionRequests: [{apiGroups: [""], resources: [pods], verbs: [`+
			verbs+`]}]}}`+"\n", crd("boats.test", "Boat", "one"))
	}
	first := s.put(at+"v1", content("get"))
	s.put(at+"v2", content("get, list"))
	approve := map[string]string{permission.AnnotationIncrease: permission.ApproveIncrease}
	for name, tc := range map[string]struct {
		ofPackage, ofLock map[string]string
		want              string
	}{
		"allowed":                {nil, nil, ""},
		"required by the user":   {approve, nil, "list pods in the core group"},
		"announced by a manager": {nil, approve, "list pods in the core group"},
	} {
		p := env.NewProvider("boats", at+"v1")
		p.Annotations = tc.ofPackage
		p.Status.CurrentIdentifier, p.Status.ResolvedDigest, p.Status.CurrentRevision = at+"v1", first.String(), "boats-1"
		running := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: "boats-1", Labels: map[string]string{
			v1.LabelPackage: "boats",
		}}}
		running.Spec.Image, running.Spec.Digest, running.Spec.DesiredState, running.Spec.Revision = at+
			"v1", first.String(), v1.RevisionActive, 1
		lock := &v1beta1.Lock{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.LockName, Annotations: tc.ofLock}}
		update := env.NewProvider("boats", at+"v2")
		got, err := fakePlanner(t, s, p, running, lock).Install(t.Context(), update, planner.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var waits []string
		for _, rule := range got.Permissions.NeedsApproval {
			waits = append(waits, rbac.Describe(rule))
		}
		if text := strings.Join(waits, "; "); text != tc.want || got.Blocked() {
			t.Errorf("%s: %q wait for approval, want %q; blocked is %t", name, text, tc.want, got.Blocked())
		}
	}
}

// A package that was rolled back stands for the version that runs, also before the Lock lists it.
func TestPlanTakesARolledBackPackageForTheVersionThatRuns(t *testing.T) {
	s := newFakeContent()
	const at = "registry.example.com/"
	s.put(at+"app:v1", strings.Replace(needing("app", at+"leaf"), "'>=v1'", "'<v2'", 1))
	leaf := env.NewProvider("leaf", at+"leaf:v2.0.0")
	leaf.Generation = 2
	leaf.Status.Rollback = &v1.Rollback{From: "leaf-2", To: "leaf-1", Generation: 2}
	running := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: "leaf-1", Labels: map[string]string{
		v1.LabelPackage: "leaf",
	}}}
	running.Spec.Image, running.Spec.DesiredState, running.Spec.Revision = at+"leaf:v1.0.0", v1.RevisionActive, 3
	pl := fakePlanner(t, s, leaf, running)
	got, err := pl.Install(t.Context(), env.NewProvider("app", at+"app:v1"), planner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Dependencies) != 1 || got.Dependencies[0].Installed != at+"leaf:v1.0.0" || got.WaitsForDependencies() {
		t.Errorf("planned with the dependencies %+v, want the running v1.0.0", got.Dependencies)
	}
}

// A plan whose digest is pinned contains the update of a package that was rolled back from the same pinned reference:
// like the update itself, it changes the reference, which ends the rollback. Any other package keeps its pinned
// reference.
func TestPlanEndsARollbackFromThePinnedReference(t *testing.T) {
	s := newFakeContent()
	const tag = "registry.example.com/leaf:v2.0.0"
	pinned := tag + "@" + s.put(tag, needing("leaf")).String()
	for name, tc := range map[string]struct {
		rolledBack int64
		want       string
	}{
		"rolled back":                     {2, tag},
		"rolled back, and changed since":  {1, pinned},
		"healthy with the same reference": {0, pinned},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := env.NewProvider("leaf", pinned)
			leaf.Generation = 2
			if tc.rolledBack > 0 {
				leaf.Status.Rollback = &v1.Rollback{From: "leaf-2", To: "leaf-1", Generation: tc.rolledBack}
			}
			pl := fakePlanner(t, s, leaf)
			want := leaf.DeepCopy()
			want.Spec.Package = tag
			got, err := pl.Install(t.Context(), want, planner.Options{Pin: true})
			if err != nil {
				t.Fatal(err)
			}
			if got.Package.To.Reference != tc.want || got.WritesPackage() != (tc.want != pinned) {
				t.Errorf("the plan leads to %s (writes: %t), want %s", got.Package.To.Reference, got.WritesPackage(), tc.want)
			}
		})
	}
}
