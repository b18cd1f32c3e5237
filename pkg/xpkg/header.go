package xpkg

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
)

// ErrNotAnObject is the code for a document that is not a Kubernetes object.
var ErrNotAnObject = errcode.Code{
	Name: "NotAnObject", Class: errcode.Invalid,
	Cause: "A document is not a Kubernetes object: it is not a mapping, or has no apiVersion or kind.",
	Fix:   "Give the document an apiVersion and a kind, or take it out of the package.",
}

// header holds the fields that identify a Kubernetes object.
type header struct {
	apiVersion, kind, name string
	// kindAt is the offset of the value of kind.
	kindAt int
}

// readHeader reads the header from canonical JSON, whose sorted keys put it at
// the start of most objects.
func readHeader(json []byte) (header, *fault) {
	var h header
	c := cursor{text: json}
	object := c.fields(func(key string) bool {
		switch key {
		case "apiVersion":
			h.apiVersion, _ = c.string()
		case "kind":
			h.kindAt = c.at
			h.kind, _ = c.string()
		case "metadata":
			c.fields(func(key string) bool {
				if key == "name" {
					h.name, _ = c.string()
				}
				return key < "name"
			})
		}
		return key < "metadata"
	})
	switch {
	case !object:
		return h, &fault{code: ErrNotAnObject, what: "the document is not a mapping"}
	case h.apiVersion == "" && h.kind == "":
		return h, &fault{code: ErrNotAnObject, what: "the document has neither apiVersion nor kind"}
	case h.apiVersion == "":
		return h, &fault{code: ErrNotAnObject, what: "the document has no apiVersion"}
	case h.kind == "":
		return h, &fault{code: ErrNotAnObject, what: "the document has no kind"}
	}
	return h, nil
}

// gvk is the header's apiVersion and kind in three parts.
func (h header) gvk() schema.GroupVersionKind {
	group, version, ok := strings.Cut(h.apiVersion, "/")
	if !ok {
		group, version = "", h.apiVersion
	}
	return schema.GroupVersionKind{Group: group, Version: version, Kind: h.kind}
}
