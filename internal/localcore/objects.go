package localcore

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/runtime/processruntime"
)

// Names of the objects of core, as in Crossplane's Helm chart.
const (
	account       = crossplane.DefaultAccount
	systemRole    = account + ":system:aggregate-to-crossplane"
	webhookName   = "crossplane-webhooks"
	webhookNumber = 9443
	webhookPort   = "webhooks"
	serverSecret  = "crossplane-tls-server"
	clientSecret  = "crossplane-tls-client"
	// aggregateLabel selects the ClusterRoles of packages and of composite resources for core.
	aggregateLabel = "rbac.crossplane.io/aggregate-to-crossplane"
	// defaultRuntimeConfig is the DeploymentRuntimeConfig that the initialization of core creates, which the fence denies.
	defaultRuntimeConfig = "default"
)

// fencedObjects returns the objects that must exist before core runs, in the order of their creation. The fence is
// first.
func fencedObjects(namespace string) []client.Object {
	policy, binding := crossplane.Fence(types.NamespacedName{Namespace: namespace, Name: account})
	return []client.Object{
		policy, binding,
		&corev1.ServiceAccount{
			TypeMeta:   typeMeta(corev1.SchemeGroupVersion, "ServiceAccount"),
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account, Labels: labels()},
		},
		&rbacv1.ClusterRole{
			TypeMeta:   typeMeta(rbacv1.SchemeGroupVersion, "ClusterRole"),
			ObjectMeta: metav1.ObjectMeta{Name: account, Labels: labels()},
			AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{
				MatchLabels: map[string]string{aggregateLabel: "true"},
			}}},
		},
		&rbacv1.ClusterRole{
			TypeMeta:   typeMeta(rbacv1.SchemeGroupVersion, "ClusterRole"),
			ObjectMeta: metav1.ObjectMeta{Name: systemRole, Labels: map[string]string{"app": account, aggregateLabel: "true"}},
			Rules:      rules(),
		},
		&rbacv1.ClusterRoleBinding{
			TypeMeta:   typeMeta(rbacv1.SchemeGroupVersion, "ClusterRoleBinding"),
			ObjectMeta: metav1.ObjectMeta{Name: account, Labels: labels()},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
		},
		&v1beta1.DeploymentRuntimeConfig{
			TypeMeta:   typeMeta(v1beta1.GroupVersion, "DeploymentRuntimeConfig"),
			ObjectMeta: metav1.ObjectMeta{Name: defaultRuntimeConfig},
		},
	}
}

// rules returns the permissions of core in Crossplane's Helm chart, without Deployments, which a core without package
// runtimes does not write.
func rules() []rbacv1.PolicyRule {
	all, write := []string{rbacv1.VerbAll}, []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	rule := func(verbs []string, group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
	}
	return []rbacv1.PolicyRule{
		rule([]string{"create", "update", "patch", "delete"}, "", "events"),
		rule(all, "apiextensions.k8s.io", "customresourcedefinitions", "customresourcedefinitions/status"),
		rule(write, "", "secrets", "configmaps"),
		rule(all, "", "serviceaccounts", "services"),
		rule(all, "apiextensions.crossplane.io", rbacv1.ResourceAll),
		rule(all, "ops.crossplane.io", rbacv1.ResourceAll),
		rule(all, "pkg.crossplane.io", rbacv1.ResourceAll),
		rule(all, "protection.crossplane.io", rbacv1.ResourceAll),
		rule([]string{"get", "list", "watch"}, "apps", "deployments"),
		rule(write, "coordination.k8s.io", "leases"),
		rule(write, "admissionregistration.k8s.io", "validatingwebhookconfigurations", "mutatingwebhookconfigurations"),
	}
}

// webhookObjects returns the Service of the webhooks of core and its endpoint: the address of this machine and a port.
func webhookObjects(namespace, address string, port int) []client.Object {
	return []client.Object{
		&corev1.Service{
			TypeMeta:   typeMeta(corev1.SchemeGroupVersion, "Service"),
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: webhookName, Labels: labels()},
			Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{
				Name: webhookPort, Protocol: corev1.ProtocolTCP, Port: webhookNumber, TargetPort: intstr.FromInt32(webhookNumber),
			}}},
		},
		&discoveryv1.EndpointSlice{
			TypeMeta: typeMeta(discoveryv1.SchemeGroupVersion, "EndpointSlice"),
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: webhookName + "-process",
				Labels: map[string]string{discoveryv1.LabelServiceName: webhookName, discoveryv1.LabelManagedBy: "xpkg.dev"},
			},
			AddressType: processruntime.AddressType(address),
			Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{
				Ready: new(true),
			}}},
			Ports: []discoveryv1.EndpointPort{{
				Name: new(webhookPort), Port: new(int32(port)), Protocol: new(corev1.ProtocolTCP),
			}},
		},
	}
}

func labels() map[string]string { return map[string]string{"app": account} }

func typeMeta(version schema.GroupVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: version.String(), Kind: kind}
}
