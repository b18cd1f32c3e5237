package firstgen

import (
	"cmp"
	"fmt"
	"slices"
)

// Reason is the reason for which a part of a package has no equivalent in today's format. Reasons are stable.
type Reason string

// The reasons of a report. A part that [Read] reported with a warning has the code of the warning as its reason.
const (
	// ReasonDependency is the reason for a required CRD whose package is not known, or for which a user must select one.
	ReasonDependency Reason = "UnknownDependency"
	// ReasonCoreKind is the reason for a required CRD that Crossplane itself defined at that time.
	ReasonCoreKind Reason = "CoreKind"
	// ReasonScope is the reason for a namespaced package: as a Provider it has its permissions in every namespace.
	ReasonScope Reason = "NamespacedPermissions"
	// ReasonContainer is the reason for a container beside the controller: its image cannot be pinned.
	ReasonContainer Reason = "AdditionalContainer"
	// ReasonDeploymentField is the reason for a field of the Deployment that a package must not set, or that the
	// package manager sets itself.
	ReasonDeploymentField Reason = "DeploymentField"
	// ReasonTemplating is the reason for a package whose controller renders templates: install objects run it, and a
	// Provider does not.
	ReasonTemplating Reason = "TemplatingController"
	// ReasonRuntimeImage is the reason for a controller whose image was not part of the converted source.
	ReasonRuntimeImage Reason = "NoRuntimeImage"
	// ReasonAnnotation is the reason for metadata that exceeds the size of the annotations of an object.
	ReasonAnnotation Reason = "MetadataTooLarge"
)

// A Loss is a part of a package that has no equivalent in today's format.
type Loss struct {
	Reason Reason `json:"reason"`
	// File and Field locate the part. Field is empty for a whole file.
	File    string `json:"file"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// String returns the loss in one line.
func (l Loss) String() string {
	at := l.File
	if l.Field != "" {
		at += " " + l.Field
	}
	return fmt.Sprintf("%s: %s: %s", l.Reason, at, l.Message)
}

func sortLosses(all []Loss) {
	slices.SortStableFunc(all, func(a, b Loss) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Field, b.Field))
	})
}
