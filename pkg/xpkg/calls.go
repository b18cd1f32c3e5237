package xpkg

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// CallsProgram reports whether the object makes the API server call the package runtime:
// a webhook configuration, or a CRD with a conversion webhook. Such an object contains
// the address of the runtime and the CA bundle for its certificate. For an object from an
// index no JSON is read.
func (o Object) CallsProgram() bool {
	if o.callsKnown {
		return o.entry.CallsProgram
	}
	if o.IsWebhookConfiguration() {
		return true
	}
	text, err := o.canonical()
	if err != nil {
		return false // Whoever reads the object learns of it.
	}
	return callsProgram(o.GVK.GroupKind(), text)
}

// IsWebhookConfiguration reports whether the object is a ValidatingWebhookConfiguration
// or a MutatingWebhookConfiguration.
func (o Object) IsWebhookConfiguration() bool { return o.GVK.Group == groupAdmission }

// callsProgram reads canonical JSON, in which the sorted keys put the conversion near the
// start of spec. The CRDs of XRDs are created by the composition engine, and their
// conversion is up to the author.
func callsProgram(kind schema.GroupKind, json []byte) bool {
	switch {
	case kind.Group == groupAdmission:
		return true
	case kind.Group == groupCRD && kind.Kind == kindCRD, kind.Group == groupComposite && kind.Kind == "ManagedResourceDefinition":
		return conversionStrategy(json) == "Webhook"
	}
	return false
}

// conversionStrategy is spec.conversion.strategy; empty when there is none.
func conversionStrategy(json []byte) (strategy string) {
	c := cursor{text: json}
	c.fields(func(key string) bool {
		if key == "spec" {
			c.fields(func(key string) bool {
				if key == "conversion" {
					c.fields(func(key string) bool {
						if key == "strategy" {
							strategy, _ = c.string()
						}
						return key < "strategy"
					})
				}
				return key < "conversion"
			})
		}
		return key < "spec"
	})
	return strategy
}
