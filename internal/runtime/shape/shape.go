package shape

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/internal/plan"
)

// Input is what the objects of a program are made of.
type Input struct {
	// Owner is the revision that the program belongs to, its package, and the
	// names of all revisions of that. The kind of the package says what sort of
	// program it is: Provider or Function.
	Owner plan.Requester
	// Namespace is where programs run.
	Namespace string
	// Image is the program, with its digest: repository@sha256:… or
	// repository:tag@sha256:….
	Image string
	// PullPolicy is that of the package. Empty leaves it to the configuration.
	PullPolicy corev1.PullPolicy
	// PullSecrets are names of secrets with credentials for the image: those of the
	// package, and those of image configs.
	PullSecrets []string
	// TLSServerSecret and TLSClientSecret are names of secrets with certificates.
	// What is empty is not mounted.
	TLSServerSecret, TLSClientSecret string
	// Certificates stands for what is in the server's secret, or is empty.
	Certificates string
	// AwaitingActivation says that nothing needs the program yet: it has no
	// replicas, whatever the configuration says.
	AwaitingActivation bool
	// Config is what the administrator wants to be different, or nil.
	Config *v1beta1.DeploymentRuntimeConfig
}

// Objects are the program of a revision in a cluster.
type Objects struct {
	// Owner is who the objects belong to.
	Owner plan.Requester
	// ServiceAccount is nil when the configuration makes the program run as one
	// that somebody else looks after.
	ServiceAccount *corev1.ServiceAccount
	// ServiceAccountName is what the program runs as in any case.
	ServiceAccountName string
	Deployment         *appsv1.Deployment
	Service            *corev1.Service
	// Endpoint is the gRPC target of a function. It is empty for a provider.
	Endpoint string
}

// Build gives the objects of a program. The failures are UnpinnedImage, for an
// image without a digest, and NoProgramKind, for a package of a kind that has no
// program.
func Build(in Input) (Objects, error) {
	if in.kind() == "" {
		return Objects{}, ErrNoProgramKind.New(nil, "no program for the %s %s", in.Owner.Package.Kind, in.Owner.Package.Name)
	}
	if !strings.Contains(in.Image, "@sha256:") {
		return Objects{}, ErrUnpinnedImage.New(nil, "image %q of %s %s has no digest", in.Image, in.Owner.Package.Kind, in.Owner.Package.Name)
	}
	account := in.serviceAccount()
	deployment := in.deployment(account.Name)
	out := Objects{
		Owner: in.Owner, Deployment: deployment, Service: in.service(),
		ServiceAccountName: deployment.Spec.Template.Spec.ServiceAccountName,
	}
	if account.Name == out.ServiceAccountName {
		out.ServiceAccount = account
	}
	if in.kind() == v1.FunctionKind {
		out.Endpoint = endpoint(out.Service, &deployment.Spec.Template.Spec.Containers[0])
	}
	return out, nil
}

// kind is Provider, Function, or empty for any other.
func (in Input) kind() string {
	switch k := in.Owner.Package.Kind; k {
	case v1.ProviderKind, v1.FunctionKind:
		return k
	}
	return ""
}

func (in Input) packageLabel() string {
	if in.kind() == v1.FunctionKind {
		return v1.LabelFunction
	}
	return v1.LabelProvider
}

// selector is what tells the pods of the revision from all others.
func (in Input) selector() map[string]string {
	return map[string]string{v1.LabelRevision: in.Owner.Revision.Name, in.packageLabel(): in.Owner.Package.Name}
}

// metadata is that of a template, with what is the same for all objects. The
// objects that revisions share belong to the package beside the revision, so that
// they live as long as that.
func (in Input) metadata(template *v1beta1.ObjectMeta, name string, shared bool) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Namespace: in.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{in.Owner.Revision.Reference(true)}}
	if template != nil {
		out.Labels, out.Annotations = clone(template.Labels), clone(template.Annotations)
		if template.Name != nil && *template.Name != "" {
			out.Name = *template.Name
		}
	}
	if shared {
		out.OwnerReferences = append(out.OwnerReferences, in.Owner.Package.Reference(false))
	}
	return out
}
