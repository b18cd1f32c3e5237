package bootstrap_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
	"github.com/xpkg-dev/xpkg/internal/testing/wait"
)

// The permissions contain no wildcard and no way to obtain further permissions.
func TestPermissionsAreWrittenOut(t *testing.T) {
	dangerous := []string{"*", "escalate", "bind", "impersonate", "deletecollection"}
	seen := map[string]bool{}
	for _, g := range bootstrap.Grants() {
		if g.Name == "" || g.Reason == "" || len(g.Rules) == 0 || seen[g.Name] {
			t.Errorf("grant %+v needs a name of its own, a reason and rules", g)
		}
		seen[g.Name] = true
		for _, rule := range g.Rules {
			for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
				if slices.Contains(dangerous, word) {
					t.Errorf("%s: %s", g.Name, word)
				}
			}
			if g.Scope == bootstrap.Everywhere && slices.Contains(rule.Resources, "secrets") {
				t.Errorf("%s: secrets of all namespaces", g.Name)
			}
		}
	}
}

func TestContradictoryOptionsAreRefused(t *testing.T) {
	for _, o := range []bootstrap.Options{
		{CacheSize: "much"},
		{CacheLimit: "-1Gi"},
		{PackageGroups: []string{"s3.aws.upbound.io", "Not_A_Group"}},
		{PackageGroups: []string{"buckets.s3.aws.upbound.io/v1"}},
		{PackageGroups: []string{""}},
		{PackageGroups: []string{"apps"}},
		{PackageGroups: []string{"rbac.authorization.k8s.io"}},
		{PackageGroups: []string{"pkg.crossplane.io"}},
		{Namespace: "a b"},
		{Namespace: "\x1b[31m"},
		{Namespace: strings.Repeat("a", 64)},
		{Image: "Registry.example.org/X Y"},
		{ImagePullSecrets: []string{"good", "Bad_Name"}},
		{CacheClaim: "../claim"},
		{PermissionPolicy: "policy/other"},
		{PriorityClassName: "High Priority"},
		{CoreAccounts: []types.NamespacedName{{Namespace: "core", Name: "a:b"}}},
		{CoreAccounts: []types.NamespacedName{{Namespace: "", Name: "core"}}},
	} {
		o.Version = "v1"
		if _, err := bootstrap.Manifests(o); !errors.Is(err, bootstrap.ErrOption) {
			t.Errorf("%+v: got %v, want BootstrapOption", o, err)
		}
	}
}

// The namespace "default" has a role of its own beside that for events.
func TestNoTwoObjectsOfOneName(t *testing.T) {
	for _, namespace := range []string{"", "default", "elsewhere"} {
		all, err := bootstrap.Manifests(bootstrap.Options{Namespace: namespace, Version: "v1"})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, o := range all {
			key := o.GetObjectKind().GroupVersionKind().Kind + " " + o.GetNamespace() + "/" + o.GetName()
			if seen[key] || o.GetObjectKind().GroupVersionKind().Version == "" {
				t.Errorf("%s is there twice, or has no type", key)
			}
			seen[key] = true
			if role, ok := o.(*rbacv1.ClusterRole); ok && len(role.Rules) == 0 && role.AggregationRule == nil {
				t.Errorf("%s has no rules", key)
			}
		}
	}
}

// An API server takes everything, and the pods pass where only the strictest ones
// do.
func TestManifestsAreAccepted(t *testing.T) {
	s := newEnv(t)
	strict := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "strict", Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "restricted",
	}}}
	s.EnsureCreated(t, strict)
	all, err := bootstrap.Manifests(bootstrap.Options{
		Namespace: "strict", Version: "v1.0.0", Args: []string{"--verbose"}, ImagePullSecrets: []string{"x"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		s.EnsureCreated(t, &unstructured.Unstructured{Object: raw})
	}
	wait.Until(t, env.Limit, "there are pods", func() (string, bool) {
		var pods corev1.PodList
		if err := s.Client.List(t.Context(), &pods, client.InNamespace("strict")); err != nil {
			t.Fatal(err)
		}
		return "too few", len(pods.Items) == bootstrap.DefaultReplicas
	})
}
