package xpkg

import (
	"crypto/sha256"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/canonical"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/kinds"
)

// An Object is one object of a package, other than its metadata.
type Object struct {
	// GVK is the type of the object as it is installed. It differs from the document for an
	// AdmissionWebhookConfiguration, which is the specification's name for a
	// ValidatingWebhookConfiguration; the JSON of the document is changed as well, but its
	// Raw is not.
	GVK  schema.GroupVersionKind
	Name string
	Document

	// Known holds the summary of an object that was read from an index; nil otherwise.
	Known *Summary
	// KnownDefinitions holds the kinds that an object from an index defines; nil if the index does not contain them.
	KnownDefinitions []Definition
}

// A Summary holds the properties of an object that are frequently needed, so that they can be
// stored and used without reading the object.
type Summary struct {
	// SHA256 is the hash of the canonical JSON.
	SHA256 [sha256.Size]byte
	// Labels and Annotations of the object with string values; an API server rejects other
	// values. They must not be changed.
	Labels, Annotations map[string]string
	// CallsRuntime reports whether the object makes the API server call the package
	// runtime: a webhook configuration, or a CRD with a conversion webhook. Such an
	// object contains the address of the runtime and the CA bundle for its certificate.
	CallsRuntime bool
}

// Summary returns the summary of the object. The error is the error of JSON.
func (o Object) Summary() (Summary, error) {
	if o.Known != nil {
		return *o.Known, nil
	}
	text, err := o.JSON()
	if err != nil {
		return Summary{}, err
	}
	s := readLabels(text)
	s.SHA256, s.CallsRuntime = sha256.Sum256(text), callsRuntime(o.GVK.GroupKind(), text)
	return s, nil
}

// CallsRuntime reports whether the object makes the API server call the package runtime; see
// [Summary]. It returns false for an object that cannot be read.
func (o Object) CallsRuntime() bool {
	if o.Known != nil {
		return o.Known.CallsRuntime
	}
	text, err := o.canonical()
	return err == nil && callsRuntime(o.GVK.GroupKind(), text)
}

// IsWebhookConfiguration reports whether the object is a ValidatingWebhookConfiguration
// or a MutatingWebhookConfiguration.
func (o Object) IsWebhookConfiguration() bool { return o.GVK.Group == kinds.GroupAdmission }

// callsRuntime reads canonical JSON, in which the sorted keys put the conversion near the
// start of spec. The CRDs of XRDs are created by the composition engine, and their
// conversion is up to the author.
func callsRuntime(kind schema.GroupKind, json []byte) bool {
	switch {
	case kind.Group == kinds.GroupAdmission:
		return true
	case kind.Group == kinds.GroupCRD && kind.Kind == kinds.CRD,
		kind.Group == kinds.GroupComposition && kind.Kind == kinds.MRD:
		return conversionStrategy(json) == "Webhook"
	}
	return false
}

// conversionStrategy returns spec.conversion.strategy; or "" if there is none.
func conversionStrategy(json []byte) (strategy string) {
	c := canonical.Cursor{Text: json}
	c.Fields(func(key string) bool {
		if key == "spec" {
			c.Fields(func(key string) bool {
				if key == "conversion" {
					c.Fields(func(key string) bool {
						if key == "strategy" {
							strategy, _ = c.String()
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

// readLabels reads the labels and annotations from canonical JSON, whose sorted keys place
// the metadata near its start.
func readLabels(json []byte) Summary {
	var s Summary
	c := canonical.Cursor{Text: json}
	c.Fields(func(key string) bool {
		if key == "metadata" {
			c.Fields(func(key string) bool {
				switch key {
				case "annotations":
					s.Annotations = stringFields(&c)
				case "labels":
					s.Labels = stringFields(&c)
				}
				return key < "labels"
			})
		}
		return key < "metadata"
	})
	return s
}

// stringFields returns the string fields of the object at the cursor, or nil if there are
// none.
func stringFields(c *canonical.Cursor) map[string]string {
	var fields map[string]string
	c.Fields(func(key string) bool {
		if value, ok := c.String(); ok {
			if fields == nil {
				fields = map[string]string{}
			}
			fields[key] = value
		}
		return true
	})
	return fields
}
