package revision

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
)

// choices are the fields of a package that change what is installed. A change of any other field, such as the
// history limit, creates no new revision.
type choices struct {
	CommonLabels        map[string]string             `json:"commonLabels,omitempty"`
	CommonAnnotations   map[string]string             `json:"commonAnnotations,omitempty"`
	RuntimeConfigRef    *v1.RuntimeConfigReference    `json:"runtimeConfigRef,omitempty"`
	ControllerConfigRef *v1.ControllerConfigReference `json:"controllerConfigRef,omitempty"`
}

// Key returns 12 hexadecimal digits that identify the content with a digest, installed with the
// choices of a package. Equal content and equal choices have the same key on every cluster.
func Key(p v1.Package, digest string) string {
	c := choices{CommonLabels: p.PackageSpec().CommonLabels, CommonAnnotations: p.PackageSpec().CommonAnnotations}
	if r := p.RuntimeSpec(); r != nil {
		c.ControllerConfigRef = r.ControllerConfigRef
		if r.RuntimeConfigRef != nil && r.RuntimeConfigRef.Name != v1.DefaultRuntimeConfigName {
			c.RuntimeConfigRef = r.RuntimeConfigRef
		}
	}
	raw, err := json.Marshal(c)
	if err != nil {
		// Strings, maps of strings and pointers to them always marshal.
		panic(err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%s", digest, raw))
	return hex.EncodeToString(sum[:6])
}
