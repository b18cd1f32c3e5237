package firstgeneration

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/xpkg-dev/xpkg/apis"
	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/pkg/oci"
)

// The marks of former package managers and of the manager tell whose a record is. Nothing else does, such as its name
// or its content.
func TestRecordIsRecognizedByItsMarks(t *testing.T) {
	long := strings.Repeat("x", 70)
	owner := func(group, kind, name string, controls bool) []metav1.OwnerReference {
		return []metav1.OwnerReference{{
			APIVersion: group + "/v1alpha1", Kind: kind, Name: name, UID: "o", Controller: new(controls),
		}}
	}
	labels := func(kind, namespace, name string) map[string]string {
		return map[string]string{labelParentKind: kind, labelParentNamespace: namespace, labelParentName: name}
	}
	for name, tc := range map[string]struct {
		install string // the name of the install object, if it is not "mine"
		record  metav1.ObjectMeta
		own     bool
	}{
		"none":             {"", metav1.ObjectMeta{UID: "other"}, false},
		"labels of a user": {"", metav1.ObjectMeta{Labels: map[string]string{"app": "mine"}}, false},
		"owner": {
			"", metav1.ObjectMeta{OwnerReferences: owner(packagesv1alpha1.EarlierGroup, "StackInstall", "mine", false)}, true,
		},
		"owner of today": {
			"", metav1.ObjectMeta{OwnerReferences: owner(packagesv1alpha1.Group, "PackageInstall", "mine", true)}, true,
		},
		"StackDefinition": {
			"", metav1.ObjectMeta{OwnerReferences: owner(packagesv1alpha1.Group, "StackDefinition", "mine", true)}, true,
		},
		"owner with another name": {
			"", metav1.ObjectMeta{OwnerReferences: owner(packagesv1alpha1.EarlierGroup, "StackInstall", "other", false)}, false,
		},
		"owner of the other kind": {
			"", metav1.ObjectMeta{OwnerReferences: owner(packagesv1alpha1.Group, "ClusterPackageInstall", "mine", true)}, false,
		},
		"owner in another group": {
			"", metav1.ObjectMeta{OwnerReferences: owner("example.org", "StackInstall", "mine", false)}, false,
		},
		"another controller": {"", metav1.ObjectMeta{
			OwnerReferences: owner("example.org", "Team", "mine", true), Labels: labels("StackInstall", "team", "mine"),
		}, false},
		"labels": {"", metav1.ObjectMeta{Labels: labels("StackInstall", "team", "mine")}, true},
		"labels without the kind": {
			"", metav1.ObjectMeta{Labels: map[string]string{labelParentName: "mine"}}, true,
		},
		"labels with another kind": {
			"", metav1.ObjectMeta{Labels: labels("ClusterPackageInstall", "team", "mine")}, false,
		},
		"labels with another namespace": {
			"", metav1.ObjectMeta{Labels: labels("StackInstall", "elsewhere", "mine")}, false,
		},
		"shortened label": {
			long, metav1.ObjectMeta{Labels: labels("StackInstall", "team", long[:57]+"-abcde")}, true,
		},
		"status": {"", metav1.ObjectMeta{UID: "recorded"}, true},
		"annotation": {
			"", metav1.ObjectMeta{Annotations: map[string]string{state.AnnotationInstalledBy: "PackageInstall/team/mine"}}, true,
		},
		"annotation with another object": {"", metav1.ObjectMeta{Annotations: map[string]string{
			state.AnnotationInstalledBy: "ClusterPackageInstall/team/mine",
		}}, false},
		"annotation and another controller": {"", metav1.ObjectMeta{
			OwnerReferences: owner("v1", "ConfigMap", "mine", true),
			Annotations:     map[string]string{state.AnnotationInstalledBy: "PackageInstall/team/mine"},
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			in := &install{
				group: packagesv1alpha1.EarlierGroup, kind: "StackInstall", namespace: "team", name: "mine",
				object: &unstructured.Unstructured{
					Object: map[string]any{
						"status": map[string]any{"stackRecord": map[string]any{"uid": "recorded"}},
					}}}
			if tc.install != "" {
				in.name = tc.install
			}
			o := &unstructured.Unstructured{Object: map[string]any{}}
			o.SetGroupVersionKind(packagesv1alpha1.GroupVersion.WithKind("Package"))
			o.SetNamespace("team")
			o.SetName(in.name)
			o.SetUID(tc.record.UID)
			o.SetLabels(tc.record.Labels)
			o.SetAnnotations(tc.record.Annotations)
			o.SetOwnerReferences(tc.record.OwnerReferences)
			f := in.ownFinding(o)
			if (f == nil) != tc.own {
				t.Errorf("the problem is %+v", f)
			}
			if tc.own {
				// The manager recognizes it afterwards, and users keep their owners.
				in.object.SetUID("install")
				in.keep(o, in.object)
				if !in.isKeptBy(o, in.object) || !in.isOwn(o) {
					t.Errorf("the kept object is %+v", o)
				}
			}
		})
	}
}

// An object of a user that is created between the plan and the write is not used.
func TestAnObjectThatAUserCreatesFirstIsRefused(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	in := &install{
		group: packagesv1alpha1.EarlierGroup, kind: "ClusterStackInstall", namespace: "system", name: "boats",
		provider: "boats",
		object: &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
			"uid": "u", "name": "boats", "namespace": "system",
		}}}, reference: oci.MustParseReference("registry.example.org/acme/boats:v1.0.0"),
	}
	in.object.SetAPIVersion(packagesv1alpha1.EarlierGroup + "/v1alpha1")
	in.object.SetKind(in.kind)
	for name, tc := range map[string]struct {
		annotations map[string]string
		deleting    bool
	}{
		"of a user": {},
		"of another one": {annotations: map[string]string{
			annotationMovedFrom: "other", state.AnnotationInstalledBy: "ClusterPackageInstall/system/other",
		}},
		"of a deleted": {deleting: true},
	} {
		t.Run(name, func(t *testing.T) {
			var created client.Object
			race := interceptor.Funcs{Create: func(
				ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption,
			) error {
				created = o.DeepCopyObject().(client.Object)
				if !tc.deleting {
					created.SetAnnotations(maps.Clone(tc.annotations))
				}
				created.SetUID(types.UID(name))
				if tc.deleting {
					created.SetFinalizers([]string{"example.org/keep"})
				}
				if err := c.Create(ctx, created); err != nil {
					return err
				}
				if tc.deleting {
					if err := c.Delete(ctx, created); err != nil {
						return err
					}
				}
				return c.Create(ctx, o, options...)
			}}
			m := &Migration{Client: fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(race).Build()}
			check := func(err error, live client.Object) {
				t.Helper()
				if !errors.Is(err, migration.ErrRefused) {
					t.Errorf("error %v", err)
				}
				version := created.GetResourceVersion()
				if err := m.Client.Get(t.Context(), client.ObjectKeyFromObject(created), live); err != nil ||
					!tc.deleting && live.GetResourceVersion() != version {
					t.Errorf("the object of the user is %+v (%v)", live, err)
				}
			}
			_, err := m.ensureProvider(t.Context(), in)
			check(err, &v1.Provider{})
			if !tc.deleting {
				_, err = m.ensureInstall(t.Context(), in)
				check(err, packagesv1alpha1.NewInstall(packagesv1alpha1.ClusterPackageInstallKind))
			}
		})
	}
}
