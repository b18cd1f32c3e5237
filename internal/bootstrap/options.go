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

// Options are the settings that differ between clusters. The zero value is suitable for most clusters.
type Options struct {
	// Namespace is the namespace of the manager and of the runtimes. Empty means
	// DefaultNamespace.
	Namespace string
	// Image is the image of the manager. Empty means the image of Version, which is then
	// required.
	Image, Version string
	// ImagePullSecrets are names of secrets with credentials for the image.
	ImagePullSecrets []string
	// Replicas is the number of managers. One is active, the others are on standby. Zero means
	// DefaultReplicas.
	Replicas int32
	// Resources of the container. Empty means defaultResources.
	Resources corev1.ResourceRequirements
	// CacheClaim is the PersistentVolumeClaim of the package cache. With several
	// managers it must be one that several nodes can mount. Empty means that the
	// cache is lost with the pod.
	CacheClaim string
	// CacheSize bounds the volume of a cache without a claim; the pod is evicted if it is exceeded.
	// CacheLimit is the maximum size of the cache. Empty means defaultCacheSize and defaultCacheLimit.
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
	// FirstGeneration serves the API of the first generation of packages, which runs controllers in every namespace.
	FirstGeneration bool
	// Indexes are the indexes in which packages are found for install objects that name a kind, each as REF or
	// REF,PRIORITY.
	Indexes []string
	// IndexKeys are public keys in PEM format, of which one must have signed each index; empty verifies no signatures.
	IndexKeys string
	// Args are further arguments of the manager.
	Args []string
	// CoreAccounts are the ServiceAccounts of Crossplane core beside which the manager runs. The manifests
	// contain the policy that denies them writes of packages.
	CoreAccounts []types.NamespacedName
	// NoNetworkPolicy omits the NetworkPolicy.
	NoNetworkPolicy bool
}

const (
	// DefaultNamespace is the default namespace of Crossplane.
	DefaultNamespace = "crossplane-system"
	// defaultRepository is the repository of images of the manager.
	defaultRepository = "ghcr.io/xpkg-dev/xpkg"
	// DefaultReplicas lets one manager take over from another at once.
	DefaultReplicas = 2
	// defaultCacheSize is the size of the volume of the package cache. It leaves room for
	// downloads in progress.
	defaultCacheSize = "2Gi"
	// defaultCacheLimit is the size limit of the package cache.
	defaultCacheLimit = "1Gi"
)

// defaultResources are sized for a manager of a few hundred packages. There is no CPU
// limit: it would only make installs slower.
func defaultResources() corev1.ResourceRequirements {
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
			return ErrOption.New(err, "the %s %q is not a size such as 1Gi", name, size)
		}
	}
	return nil
}

// checkNames returns an error for names that the API server would reject, and for an image that is not a
// reference.
func (o Options) checkNames() error {
	names := map[string][]string{
		"image pull secret": o.ImagePullSecrets, "PersistentVolumeClaim": {o.CacheClaim},
		"priority class": {o.PriorityClassName}, "ConfigMap of the permission policy": {o.PermissionPolicy},
	}
	namespaces := []string{o.Namespace}
	for _, account := range o.CoreAccounts {
		namespaces, names["ServiceAccount"] = append(namespaces, account.Namespace),
			append(names["ServiceAccount"], account.Name)
	}
	for _, name := range namespaces {
		if len(validation.IsDNS1123Label(name)) > 0 {
			return ErrOption.New(nil, "%.80q is not a valid name of a namespace", name)
		}
	}
	for kind, all := range names {
		for _, name := range all {
			if name != "" && len(validation.IsDNS1123Subdomain(name)) > 0 {
				return ErrOption.New(nil, "%.80q is not a valid name of a %s", name, kind)
			}
		}
	}
	if _, err := oci.ParseReference(o.Image, oci.ParseOptions{
		DefaultRegistry: "docker.io", AllowUntagged: true,
	}); err != nil {
		return ErrOption.New(err, "%.80q is not a valid image reference", o.Image)
	}
	return nil
}

// checkGroup returns an error for groups in which packages cannot define types. All permissions in a group
// such as rbac.authorization.k8s.io allow a subject to get every permission.
func checkGroup(group string) error {
	switch {
	case group == rbacv1.APIGroupAll:
		return nil
	case len(validation.IsDNS1123Subdomain(group)) > 0:
		return ErrOption.New(nil, "%.80q is not an API group such as s3.aws.upbound.io", group)
	case rbac.Reserved(schema.GroupResource{Group: group}):
		return ErrOption.New(nil, "packages must not define types in the API group %s", group)
	}
	return nil
}

func (o Options) withDefaults() Options {
	o.Namespace = cmp.Or(o.Namespace, DefaultNamespace)
	o.Image = cmp.Or(o.Image, defaultRepository+":"+o.Version)
	o.Replicas = cmp.Or(o.Replicas, DefaultReplicas)
	o.CacheSize, o.CacheLimit = cmp.Or(o.CacheSize, defaultCacheSize), cmp.Or(o.CacheLimit, defaultCacheLimit)
	if len(o.Resources.Requests)+len(o.Resources.Limits) == 0 {
		o.Resources = defaultResources()
	}
	return o
}
