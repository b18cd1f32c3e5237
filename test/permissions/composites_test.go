package permissions_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

const xrds = `apiVersion: meta.pkg.crossplane.io/v1
kind: Configuration
metadata: {name: composites}
spec: {}
---
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xthings.composites.example.org}
spec:
  group: composites.example.org
  names: {kind: XThing, plural: xthings}
  claimNames: {kind: Thing, plural: things}
  versions:
  - {name: v1, served: true, referenceable: true, schema: {openAPIV3Schema: {type: object}}}
`

// The roles of composite resources are there, belong to their definition, and go with
// it.
func TestRolesOfComposites(t *testing.T) {
	s := newSuite(t)
	s.run(t, s.Config, controller.Permissions{})
	p := &v1.Configuration{ObjectMeta: metav1.ObjectMeta{Name: "composites"}}
	p.Spec.Package = s.Push(t, "permissions/composites", "v1", xrds)
	wait.Until(t, env.Limit, "the package is created", func() (string, bool) {
		err := s.Client.Create(t.Context(), p)
		return "not yet", err == nil || apierrors.IsAlreadyExists(err)
	})
	t.Cleanup(func() { _ = s.Client.Delete(context.Background(), p) })
	wait.Until(t, env.Limit, "the package is healthy", func() (string, bool) {
		if err := s.Client.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			return err.Error(), false
		}
		ready := p.GetCondition(v1.TypeReady)
		return ready.Message, ready.Status == corev1.ConditionTrue
	})
	const name = "crossplane:composite:xthings.composites.example.org:aggregate-to-"
	var edit rbacv1.ClusterRole
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: name + "edit"}, &edit); err != nil {
		t.Fatal(err)
	}
	claims := []rbacv1.PolicyRule{{APIGroups: []string{"composites.example.org"}, Resources: []string{"xthings", "things"}, Verbs: []string{"*"}}}
	if missing := rbac.Missing(edit.Rules, claims); missing != nil || metav1.GetControllerOf(&edit).Kind != "CompositeResourceDefinition" {
		t.Errorf("the role lacks %v, and belongs to %v", missing, edit.OwnerReferences)
	}
	// A role that is deleted returns at once, and not with the next full resync.
	if err := s.Client.Delete(t.Context(), &edit); err != nil {
		t.Fatal(err)
	}
	wait.Until(t, env.Limit, "the deleted role exists again", func() (string, bool) {
		err := s.Client.Get(t.Context(), client.ObjectKey{Name: name + "edit"}, &rbacv1.ClusterRole{})
		return "it does not", err == nil
	})
	if err := s.Client.Delete(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"browse", "crossplane", "edit", "view"} {
		wait.Until(t, env.Limit, "the role is gone: "+to, func() (string, bool) {
			err := s.Client.Get(t.Context(), client.ObjectKey{Name: name + to}, &edit)
			return "it is there", apierrors.IsNotFound(err)
		})
	}
}
