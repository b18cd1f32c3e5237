// Package kinds names the API groups and kinds of the objects that packages contain.
package kinds

// API groups.
const (
	GroupCRD         = "apiextensions.k8s.io"
	GroupComposition = "apiextensions.crossplane.io"
	GroupOperation   = "ops.crossplane.io"
	GroupAdmission   = "admissionregistration.k8s.io"
)

// Kinds.
const (
	CRD               = "CustomResourceDefinition"
	XRD               = "CompositeResourceDefinition"
	MRD               = "ManagedResourceDefinition"
	MRAP              = "ManagedResourceActivationPolicy"
	Composition       = "Composition"
	Operation         = "Operation"
	CronOperation     = "CronOperation"
	WatchOperation    = "WatchOperation"
	ValidatingWebhook = "ValidatingWebhookConfiguration"
	MutatingWebhook   = "MutatingWebhookConfiguration"
)
