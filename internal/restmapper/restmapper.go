// Package restmapper maps kinds to resources without discovery, which takes a request for each API group: the kinds that
// the programs of this module use are known when they are compiled. Others can be discovered.
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

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
)

// namespacedGroups lists the groups whose kinds have namespaces, and the kinds of these groups that have none. All kinds of
// other groups have none.
var namespacedGroups = map[string][]string{
	"apps":                 nil,
	"authorization.k8s.io": {"SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"},
	"coordination.k8s.io":  nil,
	corev1.GroupName:       {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
	"discovery.k8s.io":     nil,
	rbacv1.GroupName:       {"ClusterRole", "ClusterRoleBinding"},
	packagesv1alpha1.Group: nil,
}

// New returns a mapper for the kinds of a scheme and for other kinds, of which only metadata is read. It makes no request.
func New(scheme *runtime.Scheme, others ...schema.GroupVersionKind) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
	for kind := range scheme.AllKnownTypes() {
		if kind.Version != runtime.APIVersionInternal && !strings.HasSuffix(kind.Kind, "Options") {
			add(mapper, kind)
		}
	}
	for _, kind := range others {
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
	if without, namespaced := namespacedGroups[kind.Group]; namespaced && !slices.Contains(without, kind.Kind) {
		return meta.RESTScopeNamespace
	}
	return meta.RESTScopeRoot
}
