package bootstrap

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xpkg-dev/xpkg/internal/failure"
	"github.com/xpkg-dev/xpkg/internal/rights"
)

// Options are what differs between clusters. The zero value is made for a cluster
// with nothing out of the ordinary.
type Options struct {
	// Namespace is where the manager runs, and the programs of packages with it.
	// Empty means DefaultNamespace.
	Namespace string
	// Image is the image of the manager. Empty means that of the version that this
	// is part of, which has to be given as Version.
	Image, Version string
	// ImagePullSecrets are names of secrets with credentials for the image.
	ImagePullSecrets []string
	// Replicas is how many managers there are. One works, the others stand by. Zero
	// means DefaultReplicas.
	Replicas int32
	// Resources of the container. Nothing means DefaultResources.
	Resources corev1.ResourceRequirements
	// CacheClaim is the PersistentVolumeClaim of the package cache. With several
	// managers it must be one that several nodes can mount. Empty means that the
	// cache is lost with the pod.
	CacheClaim string
	// CacheSize bounds a cache without a claim: the pod is ended when there is more.
	// CacheLimit is how much the manager keeps at most. Empty means DefaultCacheSize
	// and DefaultCacheLimit.
	CacheSize, CacheLimit string
	// NodeSelector, Tolerations, Affinity and PriorityClassName are those of the pods.
	NodeSelector      map[string]string
	Tolerations       []corev1.Toleration
	Affinity          *corev1.Affinity
	PriorityClassName string
	// PackageGroups are the API groups whose types packages may define without
	// anybody being asked: the manager holds what it gives to their programs. "*" lets
	// it give anything, in every group, and makes it as powerful as an administrator.
	// Of other packages an administrator gives the manager what it lacks.
	PackageGroups []string
	// PermissionCeiling is the ConfigMap of the namespace with the ceiling over what
	// packages request, or empty.
	PermissionCeiling string
	// Namespaced confines the manager and the programs to the namespace, for
	// everything that lies in one.
	Namespaced bool
	// RemoveOrphans has the manager delete packages that were installed because others
	// needed them, when nobody needs them any more.
	RemoveOrphans bool
	// Args are further arguments of the manager.
	Args []string
	// NoNetworkPolicy leaves out the NetworkPolicy.
	NoNetworkPolicy bool
}

const (
	// DefaultNamespace is the namespace that the field expects.
	DefaultNamespace = "crossplane-system"
	// DefaultRepository is where images of the manager are.
	DefaultRepository = "ghcr.io/xpkg-dev/xpkg"
	// DefaultReplicas lets one manager take over from another at once.
	DefaultReplicas = 2
	// DefaultCacheSize and DefaultCacheLimit leave room for what is on its way.
	DefaultCacheSize  = "2Gi"
	DefaultCacheLimit = "1Gi"
)

// DefaultResources are those of a manager of a few hundred packages. The processor
// has no limit: an install would only take longer.
func DefaultResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
	}
}

// ErrOption is the failure of an option that makes no sense.
var ErrOption = failure.Register(failure.Code{
	Name: "BootstrapOption", Class: failure.Usage,
	Cause: "An option of what is to be installed in a cluster cannot be used.",
	Fix:   "Correct the option that the message names.",
})

// check refuses what a cluster would not understand, or would take for more than was
// meant.
func (o Options) check() error {
	for _, group := range o.PackageGroups {
		if err := checkGroup(group); err != nil {
			return err
		}
	}
	for name, size := range map[string]string{"size of the cache": o.CacheSize, "limit of the cache": o.CacheLimit} {
		if q, err := resource.ParseQuantity(size); err != nil || q.Sign() <= 0 {
			return ErrOption.New(err, "the %s %q is no size such as 1Gi", name, size)
		}
	}
	return nil
}

// checkGroup refuses what no package can define types in. Everything of such a group can
// be everything there is: who holds all of rbac.authorization.k8s.io can take any right.
func checkGroup(group string) error {
	switch {
	case group == rbacv1.APIGroupAll:
		return nil
	case len(validation.IsDNS1123Subdomain(group)) > 0:
		return ErrOption.New(nil, "%.80q is no API group such as s3.aws.upbound.io", group)
	case rights.Reserved(schema.GroupResource{Group: group}):
		return ErrOption.New(nil, "packages may not define types of the API group %s", group)
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.Image = cmp.Or(o.Image, DefaultRepository+":"+o.Version)
	o.Replicas = cmp.Or(o.Replicas, DefaultReplicas)
	o.CacheSize, o.CacheLimit = cmp.Or(o.CacheSize, DefaultCacheSize), cmp.Or(o.CacheLimit, DefaultCacheLimit)
	if len(o.Resources.Requests)+len(o.Resources.Limits) == 0 {
		o.Resources = DefaultResources()
	}
	return o
}
