package manifests

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
)

// service returns the Service of the package, whose controller is its active revision. The Service
// of a function is headless, so that a gRPC client resolves every pod and balances its calls.
// An owner with a namespace serves nothing, and has none.
func (in Input) service() *corev1.Service {
	if in.Owner.Package.Namespace != "" {
		return nil
	}
	var template *v1beta1.ObjectMeta
	if in.Config != nil && in.Config.Spec.ServiceTemplate != nil {
		template = in.Config.Spec.ServiceTemplate.Metadata
	}
	port := corev1.ServicePort{
		Name: WebhookPort, Protocol: corev1.ProtocolTCP, Port: ServiceNumber, TargetPort: intstr.FromString(WebhookPort),
	}
	s := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Service"},
		ObjectMeta: in.metadata(template, in.Owner.Package.Name, true),
		Spec:       corev1.ServiceSpec{Selector: in.selector()},
	}
	if in.kind() == v1.FunctionKind {
		s.Spec.ClusterIP = corev1.ClusterIPNone
		port.Name, port.TargetPort, port.AppProtocol = GRPCPort, intstr.FromString(GRPCPort), new("tls")
	}
	s.Spec.Ports = []corev1.ServicePort{port}
	return s
}

// NamesService reports whether the configuration names the Service of a runtime. Its name is in the certificate of the
// runtime.
func (o Objects) NamesService() bool {
	return o.Service != nil && o.Service.Name != o.Owner.Package.Name
}

// endpoint returns the address of a function. For a headless Service, clients call pods
// directly, so the port is the port of the pod.
func endpoint(s *corev1.Service, program *corev1.Container) string {
	return fmt.Sprintf("dns:///%s.%s:%d", s.Name, s.Namespace, portOf(program, GRPCPort))
}
