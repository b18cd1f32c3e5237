package check

import (
	"slices"

	apischema "k8s.io/apimachinery/pkg/runtime/schema"
)

// builtinNames has the names that kubectl accepts for the kinds of Crossplane, and the short names of the kinds of
// Kubernetes. The plural and singular names of Kubernetes are missing: kubectl prefers them to those of every CRD.
var builtinNames = []builtin{
	kubernetesKind("componentstatuses", "", "cs"),
	kubernetesKind("configmaps", "", "cm"),
	kubernetesKind("endpoints", "", "ep"),
	kubernetesKind("events", "", "ev"),
	kubernetesKind("limitranges", "", "limits"),
	kubernetesKind("namespaces", "", "ns"),
	kubernetesKind("nodes", "", "no"),
	kubernetesKind("persistentvolumeclaims", "", "pvc"),
	kubernetesKind("persistentvolumes", "", "pv"),
	kubernetesKind("pods", "", "po"),
	kubernetesKind("replicationcontrollers", "", "rc"),
	kubernetesKind("resourcequotas", "", "quota"),
	kubernetesKind("serviceaccounts", "", "sa"),
	kubernetesKind("services", "", "svc"),
	kubernetesKind("customresourcedefinitions", "apiextensions.k8s.io", "crd", "crds"),
	kubernetesKind("daemonsets", "apps", "ds"),
	kubernetesKind("deployments", "apps", "deploy"),
	kubernetesKind("replicasets", "apps", "rs"),
	kubernetesKind("statefulsets", "apps", "sts"),
	kubernetesKind("horizontalpodautoscalers", "autoscaling", "hpa"),
	kubernetesKind("cronjobs", "batch", "cj"),
	kubernetesKind("certificatesigningrequests", "certificates.k8s.io", "csr"),
	kubernetesKind("ingresses", "networking.k8s.io", "ing"),
	kubernetesKind("ipaddresses", "networking.k8s.io", "ip"),
	kubernetesKind("networkpolicies", "networking.k8s.io", "netpol"),
	kubernetesKind("poddisruptionbudgets", "policy", "pdb"),
	kubernetesKind("priorityclasses", "scheduling.k8s.io", "pc"),
	kubernetesKind("storageclasses", "storage.k8s.io", "sc"),
	kubernetesKind("volumeattributesclasses", "storage.k8s.io", "vac"),

	crossplaneKind("compositeresourcedefinitions", "compositeresourcedefinition", "apiextensions", "xrd", "xrds"),
	crossplaneKind("compositionrevisions", "compositionrevision", "apiextensions", "comprev"),
	crossplaneKind("compositions", "composition", "apiextensions", "comp"),
	crossplaneKind("environmentconfigs", "environmentconfig", "apiextensions", "envcfg"),
	crossplaneKind("managedresourceactivationpolicies", "managedresourceactivationpolicy", "apiextensions", "mrap"),
	crossplaneKind("managedresourcedefinitions", "managedresourcedefinition", "apiextensions", "mrd", "mrds"),
	crossplaneKind("usages", "usage", "apiextensions"),
	crossplaneKind("cronoperations", "cronoperation", "ops", "cronops"),
	crossplaneKind("operations", "operation", "ops", "ops"),
	crossplaneKind("watchoperations", "watchoperation", "ops", "watchops"),
	crossplaneKind("configurationrevisions", "configurationrevision", "pkg"),
	crossplaneKind("configurations", "configuration", "pkg"),
	crossplaneKind("controllerconfigs", "controllerconfig", "pkg"),
	crossplaneKind("deploymentruntimeconfigs", "deploymentruntimeconfig", "pkg"),
	crossplaneKind("functionrevisions", "functionrevision", "pkg"),
	crossplaneKind("functions", "function", "pkg"),
	crossplaneKind("imageconfigs", "imageconfig", "pkg"),
	crossplaneKind("locks", "lock", "pkg"),
	crossplaneKind("providerrevisions", "providerrevision", "pkg"),
	crossplaneKind("providers", "provider", "pkg"),
	crossplaneKind("clusterusages", "clusterusage", "protection"),
	crossplaneKind("usages", "usage", "protection"),
}

// builtin is a kind of Kubernetes or Crossplane. full are its plural and singular names, without those of Kubernetes.
type builtin struct {
	resource   apischema.GroupResource
	full       []string
	shortNames []string
}

func kubernetesKind(plural, group string, shortNames ...string) builtin {
	return builtin{apischema.GroupResource{Group: group, Resource: plural}, nil, shortNames}
}

func crossplaneKind(plural, singular, group string, shortNames ...string) builtin {
	return builtin{
		apischema.GroupResource{Group: group + ".crossplane.io", Resource: plural}, []string{plural, singular}, shortNames,
	}
}

// ambiguity returns the kind of Kubernetes or Crossplane that has a name of a CRD in a group, and whether kubectl
// prefers the CRD: kubectl prefers plural and singular names to short names, kinds of Kubernetes to CRDs, and otherwise
// the first group in the order of the alphabet. A plural or singular name that kubectl finds only in the other kind is
// usual, and none: users write it with the group.
func ambiguity(group, name string, isShort bool) (of apischema.GroupResource, hides, ok bool) {
	for _, b := range builtinNames {
		isKubernetes := b.full == nil
		before := !isKubernetes && group < b.resource.Group
		switch {
		case slices.Contains(b.full, name) && !isShort && before:
			return b.resource, true, true
		case slices.Contains(b.shortNames, name) && !isShort:
			return b.resource, true, true
		case slices.Contains(b.shortNames, name):
			return b.resource, before, true
		}
	}
	return of, false, false
}

// checkAmbiguousNames reports the first ambiguous name of a definition, and of its claim.
func (c *objectChecker) checkAmbiguousNames() {
	for _, fields := range [][]crdName{c.crd.Names.fields("spec.names"), c.crd.ClaimNames.fields("spec.claimNames")} {
		for _, field := range fields {
			if field.isKind {
				continue
			}
			of, hides, ok := ambiguity(c.crd.Group, field.value, field.isShort)
			if !ok {
				continue
			}
			if hides {
				c.finding(
					ErrHiddenName, field.path, "%s %q hides %s: `kubectl get %s` no longer finds them", field.path, field.value, of,
					field.value,
				)
			} else {
				c.finding(
					ErrHiddenName, field.path, "%s %q is a name of %s, which `kubectl get %s` finds instead", field.path, field.value,
					of, field.value,
				)
			}
			break
		}
	}
}
