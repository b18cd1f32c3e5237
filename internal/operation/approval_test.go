package operation

import (
	"context"
	"errors"
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/xpkg-dev/xpkg/apis"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/planner"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// The approval of permissions keeps the package: a command that may undo its change of the package finds no mark any
// more. It fails if that command has undone the change before.
func TestApprovalOfPermissionsKeepsThePackage(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		isUndone bool
		want     error
	}{
		"as it was": {false, nil},
		"undone":    {true, planner.ErrPlanMoved},
	} {
		t.Run(name, func(t *testing.T) {
			rev := &v1.ProviderRevision{}
			rev.SetName("boats-1")
			cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(rev).Build()
			p := v1.NewPackage(v1.ProviderKind)
			p.SetName("boats")
			w := writer{Client: cluster, transaction: "x"}
			if err := w.create(t.Context(), p); err != nil {
				t.Fatal(err)
			}
			rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}
			a := Approval{Permissions: rules, Fingerprint: "f", Of: p.DeepCopyObject().(v1.Package), rev: rev}
			if tc.isUndone {
				if err := cluster.Delete(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			if err := a.Write(t.Context(), cluster); !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if tc.want != nil {
				return
			}
			live := v1.NewPackage(v1.ProviderKind)
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(p), live); err != nil ||
				live.GetAnnotations()[revision.AnnotationTransaction] != "" {
				t.Errorf("the package after the approval: %v, %v", live.GetAnnotations(), err)
			}
			if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(rev), rev); err != nil ||
				rev.GetAnnotations()[permission.AnnotationApproved] != "f" {
				t.Errorf("the revision after the approval: %v, %v", rev.GetAnnotations(), err)
			}
		})
	}
}

// TestWaitIgnoresAMissingApprovalThatWasGiven checks that a command that waits after an approval does not end with the
// failure that the manager has reported before.
func TestWaitIgnoresAMissingApprovalThatWasGiven(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := admissionv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}
	for _, code := range []errcode.Code{rbac.ErrPermissionEscalation, rbac.ErrPermissionIncrease} {
		for _, approved := range []bool{false, true} {
			rev := &v1.ProviderRevision{}
			rev.SetName("boats-1")
			rev.Status.UnapprovedPermissions = rules
			if approved {
				rev.SetAnnotations(map[string]string{permission.AnnotationApproved: rbac.Fingerprint(rules)})
			}
			p := v1.NewPackage(v1.ProviderKind)
			p.SetName("boats")
			p.PackageStatus().CurrentRevision = "boats-1"
			cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(rev).Build()
			if got := allowedMeanwhile(t.Context(), cluster, p, code.New(nil, "it waits")); got != approved {
				t.Errorf("%s, approved %v: %v", code.Name, approved, got)
			}
		}
	}
}

// An approval adds to the consents of a package as it is when they are written. It keeps a consent that another client
// has withdrawn or given while the user was asked.
func TestApprovalsAddToTheConsentsOfTheMoment(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	p := v1.NewPackage(v1.ProviderKind)
	p.SetName("boats")
	p.SetAnnotations(map[string]string{revision.AnnotationAdopt: "one"})
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithObjects(p).Build()
	read := v1.NewPackage(v1.ProviderKind)
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(p), read); err != nil {
		t.Fatal(err)
	}
	other := read.DeepCopyObject().(v1.Package)
	other.SetAnnotations(map[string]string{revision.AnnotationAdopt: "two"})
	if err := cluster.Update(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if err := (Approval{Objects: []string{"three"}, Of: read}).Write(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	if err := cluster.Get(t.Context(), client.ObjectKeyFromObject(p), read); err != nil ||
		!slices.Equal(revision.Adoptions(read), []string{"three", "two"}) {
		t.Errorf("got %q, %v", revision.Adoptions(read), err)
	}
}

// A package that the manager has not read yet waits for nothing. The API server refuses to read a revision without a
// name.
func TestNewPackagesNeedNoApproval(t *testing.T) {
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	cluster := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(
			ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption,
		) error {
			if key.Name == "" {
				return errors.New("resource name may not be empty")
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
	p := v1.NewPackage(v1.ProviderKind)
	p.SetName("boats")
	if a, err := PendingApproval(t.Context(), cluster, p); err != nil || !a.Empty() {
		t.Errorf("%+v waits (%v)", a, err)
	}
}
