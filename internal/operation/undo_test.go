package operation

import (
	"errors"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/graph"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/webhooks"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// An undone update leaves no consents of its command, and the package is a dependency again if it was one. Other labels
// and annotations stay.
func TestUndoneUpdatesReturnConsents(t *testing.T) {
	consents := func(value string) map[string]string {
		return map[string]string{
			webhooks.AnnotationAllowed: value, revision.AnnotationAdopt: value, graph.AnnotationKindProviders: value,
			revision.AnnotationRolledBackFrom: value, graph.AnnotationRequiredBy: value,
		}
	}
	dependency := map[string]string{graph.LabelAutoInstalled: "true"}
	for name, tc := range map[string]struct{ labels, annotations map[string]string }{
		"none": {}, "others": {dependency, consents("first")},
	} {
		t.Run(name, func(t *testing.T) {
			before := v1.NewPackage(v1.ProviderKind)
			before.SetLabels(tc.labels)
			before.SetAnnotations(tc.annotations)
			live := v1.NewPackage(v1.ProviderKind)
			live.SetLabels(map[string]string{"team": "a"})
			live.SetAnnotations(consents("second"))
			revision.SetTransaction(live, "")
			(&change{before: before, after: live}).restore(live)
			labels := map[string]string{"team": "a"}
			maps.Copy(labels, tc.labels)
			if got := live.GetLabels(); !maps.Equal(got, labels) {
				t.Errorf("got the labels %v, want %v", got, labels)
			}
			if got := live.GetAnnotations(); !maps.Equal(got, tc.annotations) {
				t.Errorf("got the annotations %v, want %v", got, tc.annotations)
			}
		})
	}
}

// The advice for an undone update names no command that needs the failed revision.
func TestAdviceAfterTheUndoing(t *testing.T) {
	at := func(version, message string) v1.Package {
		p := named(v1.ProviderKind, "boats")
		p.PackageSpec().Package = "registry.test/boats:" + version
		p.SetConditions(metav1.Now(), v1.Condition{Type: v1.TypeHealthy, Status: corev1.ConditionFalse, Message: message})
		p.PackageStatus().CurrentRevision, p.PackageStatus().LastHealthyRevision = "boats-2", "boats-1"
		return p
	}
	for message, want := range map[string]string{
		"PermissionEscalation: it requests pods/exec. Approve it with `xpkg approve provider/boats`.": "Repeat the command without --atomic. Then review what the package waits for, and approve it, with `xpkg approve provider/boats`. All changes were undone: ",
		"NoProgram: it has no program. Build it again.":                                               "Build it again. All changes were undone: ",
	} {
		scheme, err := apis.NewScheme()
		if err != nil {
			t.Fatal(err)
		}
		failed := at("v2", message)
		cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(failed).Build()
		why := finalFailure(failed)
		got := errcode.From(undone(t, cluster, withoutResources, why, &change{before: at("v1", ""), after: failed})).Do
		if !strings.HasPrefix(got, want) || strings.Contains(got, "rollback") {
			t.Errorf("%s: got %q, want %q", why, got, want)
		}
	}
}

// A manager that is killed while it undoes a change has deleted a new package perhaps. The next one counts it as undone
// while its deletion, which increments the generation, goes on.
func TestUndoingGoesOnWhileAPackageIsDeleted(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	created := v1.NewPackage(v1.ProviderKind)
	created.SetName("new")
	created.SetGeneration(1)
	created.SetFinalizers([]string{"test/held"})
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(created).Build()
	c := &change{after: created.DeepCopyObject().(v1.Package)}
	created.SetGeneration(2)
	if err := errors.Join(cluster.Update(t.Context(), created), cluster.Delete(t.Context(), created)); err != nil {
		t.Fatal(err)
	}
	if undone, err := c.tryUndo(t.Context(), cluster); !undone || err != nil {
		t.Errorf("got %v, %v", undone, err)
	}
}
