package restmapper_test

import (
	"errors"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/apis"
	"github.com/xpkg-dev/xpkg/internal/restmapper"
	"github.com/xpkg-dev/xpkg/internal/testing/env"
)

// The mapper agrees with the API server about the resource and the scope of each kind.
func TestMapperAgreesWithDiscovery(t *testing.T) {
	e := env.New(t)
	scheme, err := apis.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(admissionregistrationv1.AddToScheme(scheme),
		apiextensionsv1.AddToScheme(scheme), appsv1.AddToScheme(scheme),
		authenticationv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme),
		corev1.AddToScheme(scheme), discoveryv1.AddToScheme(scheme), rbacv1.AddToScheme(scheme))
	if err != nil {
		t.Fatal(err)
	}
	mapper := restmapper.New(scheme)
	client, err := discovery.NewDiscoveryClientForConfig(e.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			kind := group.WithKind(r.Kind)
			if strings.Contains(r.Name, "/") || !scheme.Recognizes(kind) {
				continue
			}
			compared++
			m, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
			if err != nil {
				t.Errorf("%s: %v", kind, err)
				continue
			}
			if list, err := mapper.RESTMapping(
				schema.GroupKind{Group: kind.Group, Kind: kind.Kind + "List"}, kind.Version,
			); scheme.Recognizes(group.WithKind(kind.Kind+"List")) &&
				(err != nil || list.Resource != m.Resource || list.Scope != m.Scope) {
				t.Errorf("%sList: got %v, %v", kind, list, err)
			}
			if m.Resource != group.WithResource(r.Name) || (m.Scope.Name() == meta.RESTScopeNameNamespace) != r.Namespaced {
				t.Errorf(
					"%s: got %s with scope %s, want %s, namespaced %t", kind, m.Resource.Resource, m.Scope.Name(), r.Name,
					r.Namespaced,
				)
			}
		}
	}
	httpClient, err := rest.HTTPClientFor(e.Config)
	if err != nil {
		t.Fatal(err)
	}
	both, err := restmapper.WithDiscovery(mapper, e.Config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := both.RESTMapping(schema.GroupKind{Group: "batch", Kind: "Job"}, "v1"); err != nil ||
		m.Resource.Resource != "jobs" {
		t.Errorf("Job: got %v, %v, want a discovered resource", m, err)
	}
	if _, err := both.RESTMapping(schema.GroupKind{Group: "batch", Kind: "None"}, "v1"); !meta.IsNoMatchError(err) {
		t.Errorf("a kind that does not exist: got %v", err)
	}
	if compared < 40 {
		t.Errorf("%d kinds were compared", compared)
	}
}
