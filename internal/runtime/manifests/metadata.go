package manifests

import (
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// CheckMetadata fails with RuntimeRejected for names, labels and annotations of the ServiceAccount and the Service that
// the API server refuses. Of the names of Services, it accepts those that start with a digit: API servers since
// Kubernetes 1.36 do, too.
func (o Objects) CheckMetadata() error {
	if a := o.ServiceAccount; a != nil {
		if err := refusedMetadata("ServiceAccount", a.ObjectMeta, validation.IsDNS1123Subdomain); err != nil {
			return err
		}
	}
	s := o.Service
	if s == nil {
		return nil
	}
	if s.Name == o.Owner.Package.Name && len(validation.IsDNS1123Label(s.Name)) > 0 {
		return ErrRejected.New(
			nil, "the runtime of %s %s has a Service with its name, and the API server refuses the name", o.Owner.Package.Kind,
			s.Name,
		).
			WithDo(
				"Install the package under a name that has only lowercase letters, digits and hyphens, or set spec.serviceTemplate.metadata.name of its DeploymentRuntimeConfig.",
			)
	}
	return refusedMetadata("Service", s.ObjectMeta, validation.IsDNS1123Label)
}

// CheckDeploymentMetadata fails as [Objects.CheckMetadata] does, for the Deployment.
func (o Objects) CheckDeploymentMetadata() error {
	return refusedMetadata("Deployment", o.Deployment.ObjectMeta, validation.IsDNS1123Subdomain)
}

func refusedMetadata(kind string, m metav1.ObjectMeta, refusedName func(string) []string) error {
	at := field.NewPath("metadata")
	var all field.ErrorList
	for _, reason := range refusedName(m.Name) {
		all = append(all, field.Invalid(at.Child("name"), m.Name, reason))
	}
	all = append(all, metav1validation.ValidateLabels(m.Labels, at.Child("labels"))...)
	all = append(all, apivalidation.ValidateAnnotations(m.Annotations, at.Child("annotations"))...)
	if len(all) == 0 {
		return nil
	}
	return ErrRejected.New(all.ToAggregate(), "the %s %s of the runtime is invalid", kind, m.Name)
}
