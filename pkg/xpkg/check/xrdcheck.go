package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/kinds"
)

// ErrInvalidXRD is the code of an XRD from which Crossplane cannot create a CRD.
var ErrInvalidXRD = errcode.Code{
	Name: "InvalidXRD", Class: errcode.Invalid,
	Cause: "An API server would reject the CustomResourceDefinition that Crossplane creates from a CompositeResourceDefinition, so that the XRD is never established.",
	Fix:   "Correct the named field.",
}

// checkXRD checks an XRD for problems that keep Crossplane from creating its CRD: a name other than plural and group,
// duplicate versions, and schemas that an API server rejects.
func (c *objectChecker) checkXRD(spec *partialCRD) {
	if want := spec.Names.Plural + "." + spec.Group; spec.Names.Plural != "" && spec.Group != "" && c.object.Name != want {
		c.finding(ErrInvalidXRD, "metadata.name", "metadata.name must be %.300q", want)
	}
	seen := map[string]bool{}
	for i, v := range spec.Versions {
		if seen[v.Name] {
			c.finding(ErrInvalidXRD, fmt.Sprintf("spec.versions[%d].name", i), "the version %.100q is a duplicate", v.Name)
			return
		}
		seen[v.Name] = true
	}
	if c.opts.CRDs == nil {
		return
	}
	text, err := c.crdOfXRD()
	if err != nil {
		return // The schema of the XRD reports fields of the wrong type.
	}
	problems := slices.DeleteFunc(c.opts.CRDs(text), func(p Problem) bool { return !isInComposite(p.Path) })
	c.report(ErrInvalidXRD, problems)
}

// isInComposite reports whether a path of a CRD is in a schema that Crossplane takes from the XRD: the properties of spec
// and status. It sets the types of these two itself.
func isInComposite(path string) bool {
	for _, property := range []string{"spec", "status"} {
		_, rest, found := strings.Cut(path, "openAPIV3Schema.properties["+property+"]")
		if found && rest != ".type" {
			return true
		}
	}
	return false
}

// crdOfXRD returns a CRD with the schemas of an XRD.
func (c *objectChecker) crdOfXRD() ([]byte, error) {
	var xrd struct {
		Spec struct {
			Group    string         `json:"group"`
			Names    map[string]any `json:"names"`
			Versions []struct {
				Name   string          `json:"name"`
				Schema json.RawMessage `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(c.text, &xrd); err != nil {
		return nil, err
	}
	var versions []map[string]any
	for i, v := range xrd.Spec.Versions {
		versions = append(versions, map[string]any{"name": v.Name, "served": true, "storage": i == 0, "schema": v.Schema})
	}
	return json.Marshal(map[string]any{
		"apiVersion": kinds.GroupCRD + "/" + crdV1, "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": c.object.Name},
		"spec": map[string]any{"group": xrd.Spec.Group, "names": xrd.Spec.Names, "scope": "Cluster", "versions": versions},
	})
}
