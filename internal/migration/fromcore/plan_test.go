package fromcore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/fetch"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/signature"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
	"github.com/xpkg-dev/xpkg/pkg/xpkg"
)

const namespace = "crossplane-system"

// deployment returns a Deployment that is rolled out.
func deployment(namespace, name string, args ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1}}
	d.Spec.Template.Spec.ServiceAccountName = "crossplane"
	d.Spec.Template.Spec.Containers = []corev1.Container{{Name: "crossplane", Args: args}}
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1}
	return d
}

// stopped returns a Deployment with no replicas.
func stopped(d *appsv1.Deployment) *appsv1.Deployment {
	d.Spec.Replicas, d.Status = new(int32(0)), appsv1.DeploymentStatus{ObservedGeneration: 1}
	return d
}

func core() *appsv1.Deployment {
	return deployment(namespace, crossplane.DeploymentName, "core", "start")
}

// provider returns a Provider and its revision, as core has them or as the manager has them.
func provider(name string, moved bool) (*v1.Provider, *v1.ProviderRevision) {
	p := &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
	p.Spec.Package, p.Status.CurrentRevision = "registry.example.org/"+name+":v1", name+"-1"
	p.Status.Conditions = []v1.Condition{
		{Type: v1.TypeHealthy, Status: corev1.ConditionTrue, ObservedGeneration: 1},
		{Type: v1.TypeInstalled, Status: corev1.ConditionTrue, ObservedGeneration: 1},
	}
	rev := &v1.ProviderRevision{ObjectMeta: metav1.ObjectMeta{Name: name + "-1", Labels: map[string]string{
		v1.LabelPackage: name,
	}}}
	rev.Spec.DesiredState = v1.RevisionActive
	rev.Status.ObjectRefs = []v1.TypedReference{{
		APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition", Name: "boats." + name + ".example.org",
	}}
	if moved {
		rev.Spec.Digest = "sha256:" + strings.Repeat("1", 64)
	} else {
		rev.Finalizers = []string{v1.FinalizerRevision}
	}
	return p, rev
}

// tags are the digests of references.
type tags map[string]oci.Digest

func (t tags) Resolve(_ context.Context, o fetch.Origin, _ time.Duration) (oci.Digest, error) {
	if d, ok := t[o.Ref.String()]; ok {
		return d, nil
	}
	return oci.Digest{}, errors.New("the registry is unreachable")
}

func (tags) Read(context.Context, fetch.Origin, oci.Digest, bool) (*xpkg.Package, error) {
	return nil, errors.New("the plan reads content")
}

func (tags) Verify(context.Context, fetch.Origin, oci.Digest, bool) ([]signature.Verdict, error) {
	return nil, nil
}

func (tags) Named(context.Context, string) (oci.Digest, error) {
	return oci.Digest{}, errors.New("the plan reads the package cache")
}

// planOf plans the migration of a cluster with objects.
func planOf(t *testing.T, objects ...client.Object) (*migration.Plan, error) {
	t.Helper()
	scheme, err := apis.NewScheme()
	if err == nil {
		err = errors.Join(admissionv1.AddToScheme(scheme), appsv1.AddToScheme(scheme), corev1.AddToScheme(scheme))
	}
	if err != nil {
		t.Fatal(err)
	}
	m := &Migration{
		Content: tags{},
		Client:  fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(),
		Manager: bootstrap.Options{Namespace: namespace, Image: "registry.example.org/xpkg:v1", Replicas: 2},
	}
	return m.Plan(t.Context())
}

// The plan contains the steps whose result the cluster does not have.
func TestPlanFollowsTheCluster(t *testing.T) {
	ofCore, revOfCore := provider("boats", false)
	moved, revMoved := provider("rafts", true)
	fence := bootstrap.CoreFence(types.NamespacedName{Namespace: namespace, Name: "crossplane"})
	yielding := core()
	crossplane.LeavePackages(yielding)
	helm := core()
	helm.Labels, helm.Annotations = map[string]string{"app.kubernetes.io/managed-by": "Helm"},
		map[string]string{"meta.helm.sh/release-name": "xp"}
	helm.Spec.Template.Spec.InitContainers = []corev1.Container{{Args: []string{
		"core", "init", "--provider", "registry.example.org/boats:v1",
	}}}
	for name, tc := range map[string]struct {
		objects []client.Object
		pending string
		parts   []string
	}{
		"core without packages": {
			[]client.Object{core()}, "Deny Configure Install",
			[]string{
				"crossplane gets --package-runtime=External",
				"Deployment crossplane-system/xpkg with 2 replicas of registry.example.org/xpkg:v1",
				"Make the settings of Crossplane permanent",
			},
		},
		"RBAC manager": {
			[]client.Object{core(), deployment(namespace, crossplane.RBACDeploymentName, "rbac", "start")},
			"Deny Configure Install",
			[]string{"crossplane-rbac-manager gets no replicas"},
		},
		"package of core": {
			[]client.Object{core(), ofCore, revOfCore}, "Deny Configure Install Move",
			[]string{
				"Move 1 package", "provider/boats (registry.example.org/boats:v1): its revision stays if its tag",
				"the registry is unreachable", "add --package-group boats.example.org",
			},
		},
		"chart": {[]client.Object{helm}, "Deny Configure Install", []string{
			"helm upgrade xp crossplane-stable/crossplane", "Remove them from provider.packages",
		}},
		"fenced core": {
			[]client.Object{core(), fence[0], fence[1]}, "Configure Install", nil,
		},
		"fenced and configured core": {
			[]client.Object{yielding, fence[0], fence[1], ofCore, revOfCore}, "Install Move", nil,
		},
		"manager that starts": {
			[]client.Object{yielding, fence[0], fence[1], stopped(deployment("elsewhere", bootstrap.Name))}, "Install", nil,
		},
		"manager with a package of core": {
			[]client.Object{
				yielding, fence[0], fence[1], deployment(namespace, bootstrap.Name), ofCore, revOfCore, moved, revMoved,
			}, "Move", []string{"Move 2 packages"},
		},
		"all": {
			[]client.Object{yielding, fence[0], fence[1], deployment(namespace, bootstrap.Name), moved, revMoved}, "",
			[]string{"Nothing to do."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			for i, o := range tc.objects {
				tc.objects[i] = o.DeepCopyObject().(client.Object)
				tc.objects[i].SetResourceVersion("")
			}
			p, err := planOf(t, tc.objects...)
			if err != nil {
				t.Fatal(err)
			}
			var words []string
			for _, s := range p.Steps {
				if !s.Done {
					word, _, _ := strings.Cut(s.Title, " ")
					words = append(words, word)
				}
			}
			// Without a fence, core can still create managed resource definitions.
			if got := strings.TrimSuffix(strings.Join(words, " "), " Delete"); got != tc.pending {
				t.Errorf("pending %q, want %q", got, tc.pending)
			}
			var text strings.Builder
			p.WriteText(&text)
			for _, part := range tc.parts {
				if !strings.Contains(text.String(), part) {
					t.Errorf("%q is missing in\n%s", part, text.String())
				}
			}
		})
	}
}

// All reasons that prevent the migration are reported at once.
func TestPlanRefuses(t *testing.T) {
	paused, rev := provider("paused", false)
	paused.Annotations = map[string]string{v1.AnnotationPaused: "true"}
	deleted, _ := provider("deleted", false)
	deleted.Finalizers, deleted.DeletionTimestamp = []string{"example.org/wait"}, new(metav1.Now())
	held, revHeld := provider("held", false)
	revHeld.Annotations = map[string]string{v1.AnnotationPaused: "true"}
	manager := deployment("elsewhere", bootstrap.Name)
	manager.Labels = map[string]string{"app.kubernetes.io/component": "package-manager"}
	for name, tc := range map[string]struct {
		objects []client.Object
		code    errcode.Code
		parts   []string
	}{
		"no core": {nil, migration.ErrNoCore, []string{"Crossplane does not run in the namespace crossplane-system"}},
		"other namespace": {[]client.Object{deployment("core", "crossplane", "core", "start")}, migration.ErrNoCore, []string{
			"--namespace core",
		}},
		"all findings": {
			[]client.Object{
				core(), deployment("core", "crossplane", "core", "start"), manager, paused, rev, deleted, held, revHeld,
			}, migration.ErrRefused,
			[]string{
				"Crossplane also runs in the namespace core", "a manager of xpkg runs in the namespace elsewhere",
				"provider/deleted is being deleted",
				"provider/paused is paused: run `kubectl annotate provider.pkg.crossplane.io paused crossplane.io/paused-`",
				"the revision held-1 of provider/held is paused",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := planOf(t, tc.objects...)
			if !errors.Is(err, tc.code) {
				t.Fatalf("%v, want %s", err, tc.code.Name)
			}
			for _, part := range tc.parts {
				if !strings.Contains(errcode.Message(err), part) {
					t.Errorf("%q is missing in %q", part, errcode.Message(err))
				}
			}
		})
	}
}

// The fence keeps the accounts of other installations of core.
func TestFenceKeepsItsAccounts(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err == nil {
		err = errors.Join(admissionv1.AddToScheme(scheme), appsv1.AddToScheme(scheme), corev1.AddToScheme(scheme))
	}
	if err != nil {
		t.Fatal(err)
	}
	other := types.NamespacedName{Namespace: "other", Name: "core"}
	fence := bootstrap.CoreFence(other)
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(core(), fence[0], fence[1]).Build()
	m := &Migration{Client: cluster, Config: &rest.Config{}, Manager: bootstrap.Options{
		Namespace: namespace, Image: "registry.example.org/xpkg:v1", Replicas: 2,
	}}
	plan, err := m.Plan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The wait for the policy fails without an API server.
	_ = plan.Steps[0].Run(t.Context(), func(string, ...any) {})
	got, err := crossplane.FencedAccounts(t.Context(), cluster)
	if want := []types.NamespacedName{other, {Namespace: namespace, Name: "crossplane"}}; err != nil ||
		!slices.Equal(got, want) {
		t.Errorf("got %v and %v, want %v", got, err, want)
	}
}

// A migration ends soon if all packages that are left wait for permissions of the manager.
func TestMigrationEndsWithoutPermissions(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	lacks := func(name string) []client.Object {
		p, rev := provider(name, true)
		p.SetConditions(metav1.Now(), v1.Unhealthy("the manager may not grant get on boats"))
		rev.SetConditions(metav1.Now(), v1.Ready(
			corev1.ConditionFalse, v1.ConditionReason(rbac.ErrPermissionMissing.Name), "the manager may not grant get on boats",
		))
		return []client.Object{p, rev}
	}
	ready, rev := provider("rafts", true)
	waiting, revWaiting := provider("ships", false)
	for name, tc := range map[string]struct {
		objects []client.Object
		code    errcode.Code
	}{
		"blocked":                   {append(lacks("boats"), ready, rev), migration.ErrBlocked},
		"another is being moved":    {append(lacks("boats"), waiting, revWaiting), migration.ErrUnfinished},
		"none lacks any permission": {[]client.Object{waiting, revWaiting}, migration.ErrUnfinished},
	} {
		t.Run(name, func(t *testing.T) {
			for i, o := range tc.objects {
				tc.objects[i] = o.DeepCopyObject().(client.Object)
				tc.objects[i].SetResourceVersion("")
			}
			synctest.Test(t, func(t *testing.T) {
				m := &Migration{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).Build()}
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				before := time.Now()
				if err := m.waitMoved(ctx, namespace, func(string, ...any) {}); !errors.Is(err, tc.code) {
					t.Errorf("%v, want %s", err, tc.code.Name)
				}
				if tc.code.Name == migration.ErrBlocked.Name && time.Since(before) > time.Minute {
					t.Errorf("the migration ended after %s", time.Since(before))
				}
			})
		})
	}
}

// The note on permissions names the groups of XRDs, without reserved ones and those that the manager may grant.
func TestUngrantableGroupsOfXRDs(t *testing.T) {
	s := &snapshot{composites: []string{
		"xships.ships.example.org", "xrafts.ships.example.org", "xs.pkg.crossplane.io", "xs.granted.example.org",
	}}
	if got, want := s.ungrantable([]string{
		"granted.example.org",
	}), []string{"ships.example.org"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
