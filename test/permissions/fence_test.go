package permissions_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/controller"
	"github.com/xpkg-dev/xpkg/internal/fence"
	"github.com/xpkg-dev/xpkg/internal/leader"
	"github.com/xpkg-dev/xpkg/internal/permission"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// system is a namespace of the cluster itself.
const system = metav1.NamespaceSystem

// as returns a client with the token of a ServiceAccount.
func (s *suite) as(t *testing.T, namespace, name string) client.Client {
	t.Helper()
	return clientOf(t, s.ServiceAccount(t, namespace, name))
}

// clientOf returns a client for the kinds of Kubernetes.
func clientOf(t *testing.T, cfg *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(cfg, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func at(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func secret(namespace, name string, kind corev1.SecretType, annotations map[string]string) *corev1.Secret {
	o := &corev1.Secret{ObjectMeta: at(namespace, name), Type: kind}
	o.Annotations = annotations
	return o
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: at(namespace, name), Data: map[string]string{"key": "value"}}
}

func lease(namespace, name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: at(namespace, name), Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("hostile"),
	}}
}

// tokenOf returns a Secret that a token controller fills with a token of a ServiceAccount.
func tokenOf(namespace, name string) *corev1.Secret {
	return secret(namespace, name, corev1.SecretTypeServiceAccountToken, map[string]string{
		corev1.ServiceAccountNameKey: "default",
	})
}

// runtimeOf installs a provider without requests, and returns a client with the identity of its runtime.
func (s *suite) runtimeOf(t *testing.T, name string) client.Client {
	t.Helper()
	p := s.install(t, name, provider(name, "", "", crd("things."+name+".example.org", "Namespaced")))
	revision := s.healthy(t, p)
	s.EnsureCreated(t, &corev1.ServiceAccount{ObjectMeta: at(home, revision)})
	return s.as(t, home, revision)
}

// changes are the ways to write an object.
var changes = map[string]func(t *testing.T, c client.Client, o client.Object) error{
	"create": func(t *testing.T, c client.Client, o client.Object) error { return c.Create(t.Context(), o) },
	"update": func(t *testing.T, c client.Client, o client.Object) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
				return err
			}
			o.SetLabels(map[string]string{"hostile": "true"})
			return c.Update(t.Context(), o)
		})
	},
	"patch": func(t *testing.T, c client.Client, o client.Object) error {
		return c.Patch(
			t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"hostile":"true"}}}`)),
		)
	},
	"delete": func(t *testing.T, c client.Client, o client.Object) error { return c.Delete(t.Context(), o) },
	"delete all": func(t *testing.T, c client.Client, o client.Object) error {
		return c.DeleteAllOf(t.Context(), o, client.InNamespace(o.GetNamespace()), client.MatchingFields{
			"metadata.name": o.GetName(),
		})
	},
}

// isFenced reports whether the fence denied a request.
func isFenced(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), fence.RuntimesName)
}

// A runtime with the permissions of every provider cannot take over its manager, or another identity: the API server
// denies each way, and the objects stay as they are.
//
// hardening: H12
func TestRuntimeCannotTakeOverItsManager(t *testing.T) {
	s := newSuite(t)
	policy := policyOf(t, s, "fenced-policy", "deny: [{name: no-pods, resources: [pods]}]")
	s.run(t, s.Config, controller.Permissions{Policy: permission.PolicySource{ConfigMap: policy.Name}})
	hostile := s.runtimeOf(t, "hostile")
	existing := map[string]client.Object{
		"the Lease of the manager":              lease(home, leader.DefaultLease),
		"the permission policy":                 configMap(home, policy.Name),
		"the CA of workloads":                   configMap(elsewhere, "kube-root-ca.crt"),
		"the configuration of the cluster":      configMap(system, "fenced"),
		"a Secret of the cluster":               secret(system, "fenced", corev1.SecretTypeOpaque, nil),
		"a Lease of the cluster":                lease(system, "fenced"),
		"a Lease of another controller":         lease(elsewhere, "fenced"),
		"the CA":                                secret(home, v1.RootCASecretName, corev1.SecretTypeOpaque, nil),
		"a server certificate":                  secret(home, v1.TLSServerSecretName("fenced"), corev1.SecretTypeOpaque, nil),
		"a client certificate":                  secret(home, v1.TLSClientSecretName("fenced"), corev1.SecretTypeOpaque, nil),
		"the Helm release of the manager":       secret(home, "sh.helm.release.v1.xpkg.v1", "helm.sh/release.v1", nil),
		"a token of the manager's namespace":    tokenOf(home, "fenced-token"),
		"a token of another namespace":          tokenOf(elsewhere, "fenced-token"),
		"a bootstrap token in other namespaces": secret(elsewhere, "fenced-bootstrap", corev1.SecretTypeBootstrapToken, nil),
	}
	admin := clientOf(t, s.Config)
	for name, o := range existing {
		if err := client.IgnoreAlreadyExists(admin.Create(t.Context(), o)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		t.Cleanup(func() {
			if err := client.IgnoreNotFound(admin.Delete(context.WithoutCancel(t.Context()), o)); err != nil {
				t.Error(err)
			}
		})
	}
	// A fence that names no permission policy may be in effect before this one.
	wait.Until(t, env.Limit, "the fence is in effect", func() (string, bool) {
		err := hostile.Update(
			t.Context(), existing["the permission policy"].DeepCopyObject().(client.Object), client.DryRunAll,
		)
		return fmt.Sprint(err), isFenced(err)
	})
	for name, o := range existing {
		for way, change := range changes {
			before := o.DeepCopyObject().(client.Object)
			if err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), before); err != nil {
				t.Fatal(err)
			}
			attempt := before.DeepCopyObject().(client.Object)
			if way == "create" {
				attempt.SetResourceVersion("")
			}
			if err := change(t, hostile, attempt); !isFenced(err) {
				t.Errorf("%s %s: %v, want a denial by the fence", way, name, err)
			}
			after := before.DeepCopyObject().(client.Object)
			err := admin.Get(t.Context(), client.ObjectKeyFromObject(o), after)
			if err != nil || after.GetUID() != before.GetUID() || after.GetDeletionTimestamp() != nil ||
				after.GetLabels()["hostile"] != "" {
				t.Errorf("%s %s has changed the object: %v", way, name, err)
			}
		}
	}
	generated := secret(home, "", corev1.SecretTypeServiceAccountToken, map[string]string{
		corev1.ServiceAccountNameKey: "default",
	})
	generated.GenerateName = "generated-"
	if err := hostile.Create(t.Context(), generated); !isFenced(err) {
		t.Errorf("a token with a generated name: %v, want a denial by the fence", err)
	}
}

// The fence denies a runtime nothing else, and other identities nothing.
func TestFenceDeniesNothingElse(t *testing.T) {
	s := newSuite(t)
	s.run(t, s.Config, controller.Permissions{})
	program := s.runtimeOf(t, "fenced")
	s.apply(t, `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: fence-test}
rules: [{apiGroups: ["", coordination.k8s.io, pkg.crossplane.io], resources: [configmaps, leases, secrets, providers], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: fence-test}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: fence-test}
subjects: [{kind: ServiceAccount, namespace: `+home+`, name: installer}, {kind: ServiceAccount, namespace: `+elsewhere+`, name: other}]
`)
	t.Cleanup(func() {
		s.Delete(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "fence-test"}}, &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "fence-test"},
		})
	})
	s.EnsureCreated(t, &corev1.ServiceAccount{ObjectMeta: at(home, "installer")}, &corev1.ServiceAccount{
		ObjectMeta: at(elsewhere, "other"),
	})
	s.allowed(t, "installer", "create /secrets@"+home)
	wait.Until(t, env.Limit, "the fence is in effect", func() (string, bool) {
		err := program.Create(t.Context(), tokenOf(elsewhere, "probe"), client.DryRunAll)
		return fmt.Sprint(err), isFenced(err)
	})
	for name, objects := range map[string][]client.Object{
		"runtime": {
			lease(home, "own"), configMap(home, "own"), configMap(elsewhere, "own"),
			secret(home, "own", corev1.SecretTypeOpaque, nil),
			secret(elsewhere, "own", corev1.SecretTypeOpaque, nil),
			secret(elsewhere, "own-tls-server", corev1.SecretTypeOpaque, nil),
			secret(elsewhere, "release", "helm.sh/release.v1", nil),
		},
		"installer": {
			lease(elsewhere, "free"), configMap(system, "free"), secret(home, "free-tls-client", corev1.SecretTypeOpaque, nil),
			tokenOf(home, "free"),
		},
		"other": {
			lease(system, "free"), configMap(home, "free"), secret(system, "free", corev1.SecretTypeOpaque, nil),
			tokenOf(elsewhere, "free"),
		},
	} {
		c := map[string]client.Client{
			"runtime": program, "installer": s.as(t, home, "installer"), "other": s.as(t, elsewhere, "other"),
		}[name]
		for _, o := range objects {
			for _, way := range []string{"create", "update", "patch", "delete"} {
				if err := changes[way](t, c, o); err != nil {
					t.Errorf("%s: %s %T %s/%s: %v", name, way, o, o.GetNamespace(), o.GetName(), err)
				}
			}
		}
	}
}

// The manager restores the fence when another client deletes a part of it.
func TestDeletedFenceIsRestored(t *testing.T) {
	s := newSuite(t)
	s.run(t, s.Config, controller.Permissions{})
	for _, o := range []client.Object{
		&admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{},
	} {
		former := types.UID("")
		exists := func() (string, bool) {
			err := s.Client.Get(t.Context(), client.ObjectKey{Name: fence.RuntimesName}, o)
			return fmt.Sprint(err), err == nil && o.GetUID() != former
		}
		wait.Until(t, env.Limit, "the fence exists", exists)
		former = o.GetUID()
		s.Delete(t, o)
		wait.Until(t, env.Limit, "the fence is restored", exists)
	}
}
