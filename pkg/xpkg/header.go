package xpkg

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/canonical"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/yamldoc"
)

// ErrNotAnObject is the code for a document that is not a Kubernetes object.
var ErrNotAnObject = errcode.Code{
	Name: "NotAnObject", Class: errcode.Invalid,
	Cause: "A document is not a Kubernetes object: it is not a mapping, or has no apiVersion or kind.",
	Fix:   "Add an apiVersion and a kind to the document, or remove it from the package.",
}

// header holds the fields that identify a Kubernetes object.
type header struct {
	apiVersion, kind, name string
	// kindAt is the offset of the value of kind.
	kindAt int
}

// readHeader reads the header from canonical JSON, whose sorted keys place it at the
// start of most objects.
func readHeader(json []byte) (header, *yamldoc.Fault) {
	var h header
	c := canonical.Cursor{Text: json}
	object := c.Fields(func(key string) bool {
		switch key {
		case "apiVersion":
			h.apiVersion, _ = c.String()
		case "kind":
			h.kindAt = c.At
			h.kind, _ = c.String()
		case "metadata":
			c.Fields(func(key string) bool {
				if key == "name" {
					h.name, _ = c.String()
				}
				return key < "name"
			})
		}
		return key < "metadata"
	})
	switch {
	case !object:
		return h, &yamldoc.Fault{Code: ErrNotAnObject, What: "the document is not a mapping"}
	case h.apiVersion == "" && h.kind == "":
		return h, &yamldoc.Fault{Code: ErrNotAnObject, What: "the document has neither apiVersion nor kind"}
	case h.apiVersion == "":
		return h, &yamldoc.Fault{Code: ErrNotAnObject, What: "the document has no apiVersion"}
	case h.kind == "":
		return h, &yamldoc.Fault{Code: ErrNotAnObject, What: "the document has no kind"}
	}
	return h, nil
}

// gvk returns the group, version and kind of the header.
func (h header) gvk() schema.GroupVersionKind {
	group, version, ok := strings.Cut(h.apiVersion, "/")
	if !ok {
		group, version = "", h.apiVersion
	}
	return schema.GroupVersionKind{Group: group, Version: version, Kind: h.kind}
}
