package manifests

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// ConfigAnnotation on a ServiceAccount is the configuration that names it, as "Kind/name". The packages that use the
// configuration share the ServiceAccount.
const ConfigAnnotation = "xpkg.dev/runtime-config"

// serviceAccount returns the ServiceAccount of the revision, or the one named by the
// configuration, which revisions share.
func (in Input) serviceAccount() *corev1.ServiceAccount {
	var template *v1beta1.ObjectMeta
	if in.Config != nil && in.Config.Spec.ServiceAccountTemplate != nil {
		template = in.Config.Spec.ServiceAccountTemplate.Metadata
	}
	named := template != nil && template.Name != nil && *template.Name != ""
	a := &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ServiceAccount"},
		ObjectMeta: in.metadata(template, in.Owner.Revision.Name, named),
	}
	delete(a.Annotations, ConfigAnnotation)
	if named {
		metav1.SetMetaDataAnnotation(&a.ObjectMeta, ConfigAnnotation, in.configName())
	}
	a.ImagePullSecrets = in.pullSecrets(nil)
	return a
}

// configName returns the value of [ConfigAnnotation] for the configuration.
func (in Input) configName() string {
	return cmp.Or(in.Config.Kind, v1beta1.DeploymentRuntimeConfigKind) + "/" + in.Config.Name
}

// AccountUse is how a runtime may use an existing ServiceAccount.
type AccountUse int

const (
	// AccountForeign is a ServiceAccount that another package or user manages. The runtime needs the privilege
	// [ServiceAccount] to use it, and never changes it.
	AccountForeign AccountUse = iota
	// AccountOwn is a ServiceAccount that the package controls or may take.
	AccountOwn
	// AccountShared is a ServiceAccount that another package controls, and that the configuration of both packages names.
	// The package becomes an additional owner, so that the ServiceAccount outlives the other package.
	AccountShared
)

// ClaimAccount returns how the runtime may use an existing ServiceAccount, and the owner of a foreign one, or nil.
func (o Objects) ClaimAccount(live *corev1.ServiceAccount) (AccountUse, *metav1.OwnerReference) {
	ours, holder := Claim(live, o.Owner)
	same := live.Annotations[ConfigAnnotation] == o.AccountConfig
	switch {
	case ours && (same || slices.ContainsFunc(live.OwnerReferences, o.Owner.IsFamily)):
		return AccountOwn, nil
	case holder == nil || o.AccountConfig == "" || !same && !o.sharedBefore(live, *holder):
		return AccountForeign, holder
	case !isController(*holder):
		return AccountOwn, nil
	}
	return AccountShared, holder
}

// sharedBefore reports whether a manager that did not write [ConfigAnnotation] let the package share a ServiceAccount.
// The package that controls the ServiceAccount writes the annotation next.
func (o Objects) sharedBefore(live *corev1.ServiceAccount, holder metav1.OwnerReference) bool {
	others := func(r metav1.OwnerReference) bool { return IsPackage(r) && !isController(r) && !o.Owner.Package.Is(r) }
	return live.Annotations[ConfigAnnotation] == "" && IsPackage(holder) &&
		slices.ContainsFunc(live.OwnerReferences, o.Owner.Package.Is) && slices.ContainsFunc(live.OwnerReferences, others)
}

// pullSecrets returns others with the pull secrets of the package added, without
// duplicates.
func (in Input) pullSecrets(others []corev1.LocalObjectReference) []corev1.LocalObjectReference {
	for _, name := range in.PullSecrets {
		if ref := (corev1.LocalObjectReference{Name: name}); !slices.Contains(others, ref) {
			others = append(others, ref)
		}
	}
	return others
}

// clone returns a copy of a map, and nil for an empty map.
func clone(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	return maps.Clone(m)
}
