package restore_test

import (
	"context"
	"fmt"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// holdGarbageCollector denies updates and deletes of objects of packages to all users except the
// restore and the package manager. It returns when the policy is in effect; the returned function
// deletes the policy.
func holdGarbageCollector(t *testing.T, c *cluster, f fixture) (release func()) {
	t.Helper()
	name := f.name + "-hold"
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update, admissionv1.Delete},
					Rule: admissionv1.Rule{
						APIGroups:   []string{"pkg.crossplane.io", "apiextensions.k8s.io", "apiextensions.crossplane.io"},
						APIVersions: []string{"*"}, Resources: []string{"*"}, Scope: new(admissionv1.AllScopes),
					},
				},
			}}},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("request.userInfo.username in ['%s', '%s']", restorer, packageManager),
				Message:    "the garbage collector is blocked",
			}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	c.Create(t, policy)
	c.Create(t, binding)
	release = func() {
		for _, o := range []client.Object{binding, policy} {
			if err := c.Client.Delete(context.Background(), o); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(release)
	other := env.NewClient(t, c.Config)
	until(t, "the garbage collector is blocked", func() (string, bool) {
		err := other.Delete(t.Context(), compositionDefinition(), client.DryRunAll)
		return fmt.Sprint(err), apierrors.IsInvalid(err) || apierrors.IsForbidden(err)
	})
	return release
}

// compositionDefinition returns a CRD that every cluster with a package manager has.
func compositionDefinition() client.Object {
	o := &metav1.PartialObjectMetadata{}
	o.APIVersion, o.Kind, o.Name = "apiextensions.k8s.io/v1", "CustomResourceDefinition",
		"compositions.apiextensions.crossplane.io"
	return o
}

// waitGarbageCollection waits until the garbage collector has deleted an object whose owner never
// existed.
func waitGarbageCollection(t *testing.T, c *cluster) {
	t.Helper()
	orphan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", GenerateName: "orphan-",
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: "never-was", UID: "00000000-0000-0000-0000-000000000000",
		}},
	}}
	c.Create(t, orphan)
	until(t, "the garbage collector runs", func() (string, bool) {
		err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(orphan), orphan)
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
}
