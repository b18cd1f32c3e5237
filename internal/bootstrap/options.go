package bootstrap

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// Options are the settings that differ between clusters. The zero value fits an ordinary
// cluster.
type Options struct {
	// Namespace is the namespace of the manager and of the runtimes. Empty means
	// DefaultNamespace.
	Namespace string
	// Image is the image of the manager. Empty means the image of Version, which is then
	// required.
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
	// NodeSelector, Tolerations, Affinity and PriorityClassName are settings of the pods.
	NodeSelector      map[string]string
	Tolerations       []corev1.Toleration
	Affinity          *corev1.Affinity
	PriorityClassName string
	// PackageGroups are the API groups for whose resources runtimes may get permissions
	// without approval: the manager holds these permissions itself. "*" lets it grant any
	// permission in every group, and makes it equivalent to an administrator. For other
	// packages an administrator grants the manager the missing permissions.
	PackageGroups []string
	// PermissionPolicy is the ConfigMap of the namespace with the policy for requested
	// permissions, or empty.
	PermissionPolicy string
	// Namespaced limits the manager and the runtimes to the namespace, for namespaced
	// resources.
	Namespaced bool
	// RemoveOrphans makes the manager uninstall dependencies that no package needs any
	// longer.
	RemoveOrphans bool
	// Args are further arguments of the manager.
	Args []string
	// CoreAccounts are the ServiceAccounts of Crossplane core beside which the manager runs. The manifests
	// contain the policy that denies them writes of packages.
	CoreAccounts []types.NamespacedName
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
	// DefaultCacheSize is the size of the volume of the package cache. It leaves room for
	// downloads in progress.
	DefaultCacheSize = "2Gi"
	// DefaultCacheLimit is the size limit of the package cache.
	DefaultCacheLimit = "1Gi"
)

// DefaultResources are sized for a manager of a few hundred packages. There is no CPU
// limit: it would only make installs slower.
func DefaultResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi"),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
	}
}

// ErrOption is the code for an invalid option.
var ErrOption = errcode.Code{
	Name: "BootstrapOption", Class: errcode.Usage,
	Cause: "An option of `xpkg bootstrap` is invalid.",
	Fix:   "Correct the option that the message names.",
}

// check rejects options that a cluster would not accept or would interpret more broadly
// than intended.
func (o Options) check() error {
	for _, group := range o.PackageGroups {
		if err := checkGroup(group); err != nil {
			return err
		}
	}
	if err := o.checkNames(); err != nil {
		return err
	}
	for name, size := range map[string]string{"size of the cache": o.CacheSize, "limit of the cache": o.CacheLimit} {
		if q, err := resource.ParseQuantity(size); err != nil || q.Sign() <= 0 {
			return ErrOption.New(err, "the %s %q is no size such as 1Gi", name, size)
		}
	}
	return nil
}

// checkNames refuses names that the API server would not accept, and an image that is no reference.
func (o Options) checkNames() error {
	names := map[string][]string{
		"image pull secret": o.ImagePullSecrets, "PersistentVolumeClaim": {o.CacheClaim},
		"priority class": {o.PriorityClassName}, "ConfigMap of the permission policy": {o.PermissionPolicy},
	}
	namespaces := []string{o.Namespace}
	for _, account := range o.CoreAccounts {
		namespaces, names["ServiceAccount"] = append(namespaces, account.Namespace), append(names["ServiceAccount"], account.Name)
	}
	for _, name := range namespaces {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return ErrOption.New(nil, "%.80q is no name of a namespace", name)
		}
	}
	for kind, all := range names {
		for _, name := range all {
			if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
				return ErrOption.New(nil, "%.80q is no name of a %s", name, kind)
			}
		}
	}
	if _, err := oci.ParseReference(o.Image, oci.ParseOptions{DefaultRegistry: "docker.io", AllowUntagged: true}); err != nil {
		return ErrOption.New(err, "%.80q is no image of the manager", o.Image)
	}
	return nil
}

// checkGroup refuses groups in which no package can define types. All permissions in a group
// such as rbac.authorization.k8s.io allow a subject to get every permission.
func checkGroup(group string) error {
	switch {
	case group == rbacv1.APIGroupAll:
		return nil
	case len(validation.IsDNS1123Subdomain(group)) > 0:
		return ErrOption.New(nil, "%.80q is no API group such as s3.aws.upbound.io", group)
	case rbac.Reserved(schema.GroupResource{Group: group}):
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
