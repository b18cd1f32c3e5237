package manifests

import (
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/apis/pkg/v1beta1"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// Input holds the parameters of the objects of a runtime.
type Input struct {
	// Owner is the revision that owns the runtime, with its package and the names of all
	// revisions of that package. The kind of the package, Provider or Function,
	// determines the kind of runtime.
	Owner plan.Requester
	// Namespace is the namespace of the runtimes.
	Namespace string
	// Image is the runtime image with its digest: repository@sha256:… or
	// repository:tag@sha256:….
	Image string
	// External reports that another system runs the image, which can have no digest then.
	External bool
	// PullPolicy is the pull policy of the package. If it is empty, the configuration
	// decides.
	PullPolicy corev1.PullPolicy
	// PullSecrets are the names of the secrets with credentials for the image, from the
	// package and from image configs.
	PullSecrets []string
	// TLSServerSecret and TLSClientSecret are the names of the secrets with certificates.
	// A secret without a name is not mounted.
	TLSServerSecret, TLSClientSecret string
	// Certificates identifies the content of the server secret, or is empty.
	Certificates string
	// ExplainsExit makes the status of a pod contain what a container that exited wrote last.
	ExplainsExit bool
	// Restart identifies an event after which the pods must start again, or is empty.
	Restart string
	// AwaitingActivation reports that no resource needs the runtime yet. It then has no
	// replicas, regardless of the configuration.
	AwaitingActivation bool
	// Settle is the time for which a pod must be ready before it counts as available, rounded up to
	// seconds. The configuration overrides it with minReadySeconds.
	Settle time.Duration
	// Config is the administrator's configuration, or nil.
	Config *v1beta1.DeploymentRuntimeConfig
}

// Objects holds the Kubernetes objects of the runtime of a revision.
type Objects struct {
	// Owner is the owner of the objects.
	Owner plan.Requester
	// ServiceAccount is nil if the configuration names a ServiceAccount that is managed
	// elsewhere.
	ServiceAccount *corev1.ServiceAccount
	// ServiceAccountName is the name of the ServiceAccount of the runtime. It is always
	// set.
	ServiceAccountName string
	// AccountConfig is the configuration that names the ServiceAccount, as in [ConfigAnnotation]. It is empty if the
	// ServiceAccount has the name of the revision.
	AccountConfig string
	Deployment    *appsv1.Deployment
	// Service is nil for an owner with a namespace.
	Service *corev1.Service
	// Endpoint is the gRPC target of a function. It is empty for a provider.
	Endpoint string
}

// Build returns the objects of a runtime. It fails with UnpinnedImage for an image
// without a digest that the manager runs, and with NoProgramKind for a package of a kind that has no runtime.
func Build(in Input) (Objects, error) {
	if in.kind() == "" {
		return Objects{}, ErrNoProgramKind.New(nil, "the %s %s has no runtime", in.Owner.Package.Kind, in.Owner.Package.Name)
	}
	if !in.External && !strings.Contains(in.Image, "@sha256:") {
		return Objects{},
			ErrUnpinnedImage.New(nil, "image %q of %s %s has no digest", in.Image, in.Owner.Package.Kind, in.Owner.Package.Name)
	}
	account := in.serviceAccount()
	deployment := in.deployment(account.Name)
	out := Objects{
		Owner: in.Owner, Deployment: deployment, Service: in.service(),
		ServiceAccountName: deployment.Spec.Template.Spec.ServiceAccountName,
	}
	if account.Name == out.ServiceAccountName {
		out.ServiceAccount, out.AccountConfig = account, account.Annotations[ConfigAnnotation]
	} else {
		out.AccountConfig = in.configName()
	}
	if in.kind() == v1.FunctionKind {
		out.Endpoint = endpoint(out.Service, &deployment.Spec.Template.Spec.Containers[0])
	}
	return out, nil
}

// kind returns Provider or Function, and "" for packages of other kinds. An owner with a namespace has the runtime of a
// Provider.
func (in Input) kind() string {
	switch owner := in.Owner.Package; {
	case owner.Namespace != "":
		return v1.ProviderKind
	case owner.Kind == v1.ProviderKind, owner.Kind == v1.FunctionKind:
		return owner.Kind
	}
	return ""
}

func (in Input) packageLabel() string {
	if in.kind() == v1.FunctionKind {
		return v1.LabelFunction
	}
	return v1.LabelProvider
}

// selector returns the labels that select the pods of the revision and no others.
func (in Input) selector() map[string]string {
	return map[string]string{v1.LabelRevision: in.Owner.Revision.Name, in.packageLabel(): in.Owner.Package.Name}
}

// metadata returns the metadata of a template with the common labels and owners added. A
// shared object is owned by the package in addition to the revision, so that it lives as
// long as the package.
func (in Input) metadata(template *v1beta1.ObjectMeta, name string, shared bool) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Namespace: in.Namespace, Name: name, OwnerReferences: []metav1.OwnerReference{
		in.Owner.Revision.Reference(true),
	}}
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
