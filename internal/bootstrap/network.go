package bootstrap

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// metricsService returns the headless Service with which Prometheus discovers every
// manager.
func (o Options) metricsService() Object {
	return &corev1.Service{
		TypeMeta: typeMeta(corev1.SchemeGroupVersion, "Service"), ObjectMeta: o.metadata(Name + "-metrics"),
		Spec: corev1.ServiceSpec{
			ClusterIP: corev1.ClusterIPNone, Selector: labels(),
			Ports: []corev1.ServicePort{{
				Name: "metrics", Protocol: corev1.ProtocolTCP, Port: metricsPort, TargetPort: intstr.FromString("metrics"),
			}},
		},
	}
}

// disruptionBudget lets nodes be drained one by one. A budget that requires an available
// manager would block the drain of a node forever with a single replica.
func (o Options) disruptionBudget() Object {
	return &policyv1.PodDisruptionBudget{
		TypeMeta: typeMeta(policyv1.SchemeGroupVersion, "PodDisruptionBudget"), ObjectMeta: o.metadata(Name),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable: new(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels()},
		},
	}
}

// networkPolicy returns a NetworkPolicy that only allows traffic to the metrics and
// health ports of the manager, and from the manager to the API server, registries and
// DNS. A registry can use any port.
func (o Options) networkPolicy() Object {
	tcp, udp := new(corev1.ProtocolTCP), new(corev1.ProtocolUDP)
	port := func(protocol *corev1.Protocol, n int32) networkingv1.NetworkPolicyPort {
		return networkingv1.NetworkPolicyPort{Protocol: protocol, Port: new(intstr.FromInt32(n))}
	}
	return &networkingv1.NetworkPolicy{
		TypeMeta: typeMeta(networkingv1.SchemeGroupVersion, "NetworkPolicy"), ObjectMeta: o.metadata(Name),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: labels()},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{Ports: []networkingv1.NetworkPolicyPort{
				port(tcp, metricsPort), port(tcp, healthPort),
			}}},
			Egress: []networkingv1.NetworkPolicyEgressRule{{Ports: []networkingv1.NetworkPolicyPort{
				{Protocol: tcp}, port(udp, 53),
			}}},
		},
	}
}
