// Package restmapper maps kinds to resources without discovery, which takes a request for each API group: the kinds
// that the programs of this module use are known when they are compiled. Others can be discovered.
package restmapper

import (
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/xpkg-dev/xpkg/apis/apiextensions/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	xpkgv1alpha1 "github.com/xpkg-dev/xpkg/apis/xpkg/v1alpha1"
)

// clusterScoped lists the groups whose kinds have no namespaces, and of other groups the kinds without one. All other
// kinds have namespaces.
var clusterScoped = map[string][]string{
	"admissionregistration.k8s.io": nil,
	"apiextensions.crossplane.io":  nil,
	"apiextensions.k8s.io":         nil,
	"authentication.k8s.io":        nil,
	"authorization.k8s.io":         {"SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"},
	corev1.GroupName:               {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
	rbacv1.GroupName:               {"ClusterRole", "ClusterRoleBinding"},
	v1.Group:                       nil,
	xpkgv1alpha1.Group:             nil,
}

// activating are the kinds without Go types that decide which kinds of Providers are active.
var activating = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind(v1alpha1.ManagedResourceDefinitionKind),
	v1alpha1.GroupVersion.WithKind(v1alpha1.ManagedResourceActivationPolicyKind),
	{Group: v1alpha1.Group, Version: "v1", Kind: "Composition"},
}

// New returns a mapper for the kinds of a scheme and for other kinds, of which only metadata is read. It makes no
// request.
func New(scheme *runtime.Scheme, others ...schema.GroupVersionKind) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
	for kind := range scheme.AllKnownTypes() {
		if kind.Version != runtime.APIVersionInternal && !strings.HasSuffix(kind.Kind, "Options") {
			add(mapper, kind)
		}
	}
	for _, kind := range append(others, activating...) {
		add(mapper, kind)
	}
	return mapper
}

// WithDiscovery returns a mapper that looks up kinds that another one does not know in the API server.
func WithDiscovery(known meta.RESTMapper, cfg *rest.Config, c *http.Client) (meta.RESTMapper, error) {
	discovered, err := apiutil.NewDynamicRESTMapper(cfg, c)
	return withDiscovery{discovered, known}, err
}

// withDiscovery discovers kinds, except for known ones.
type withDiscovery struct {
	meta.RESTMapper
	known meta.RESTMapper
}

// RESTMapping returns the resource of a kind. It fails with a [meta.NoKindMatchError] if neither mapper knows the kind.
func (m withDiscovery) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if found, err := m.known.RESTMapping(kind, versions...); err == nil {
		return found, nil
	}
	return m.RESTMapper.RESTMapping(kind, versions...)
}

// add adds a kind. The kind of a list has the resource of its items: clients look up both.
func add(mapper *meta.DefaultRESTMapper, kind schema.GroupVersionKind) {
	item := kind
	item.Kind = strings.TrimSuffix(kind.Kind, "List")
	plural, singular := meta.UnsafeGuessKindToResource(item)
	mapper.AddSpecific(kind, plural, singular, scope(item.GroupKind()))
}

func scope(kind schema.GroupKind) meta.RESTScope {
	if kinds, listed := clusterScoped[kind.Group]; listed && (kinds == nil || slices.Contains(kinds, kind.Kind)) {
		return meta.RESTScopeRoot
	}
	return meta.RESTScopeNamespace
}
