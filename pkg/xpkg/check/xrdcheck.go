package check

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/internal/kinds"
)

// ErrInvalidXRD is the code for an XRD from which Crossplane cannot create a CRD.
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
	composite, claim, err := c.crdsOfXRD()
	if err != nil {
		return // The schema of the XRD reports fields of the wrong type.
	}
	problems := slices.DeleteFunc(c.opts.CRDs(composite), func(p Problem) bool { return !isInXRD(p) })
	if claim != nil {
		for _, p := range c.opts.CRDs(claim) {
			if rest, ok := strings.CutPrefix(p.Path, "spec.names"); ok && isInXRD(p) {
				problems = append(problems, Problem{Path: "spec.claimNames" + rest, Message: p.Message})
			}
		}
	}
	c.report(ErrInvalidXRD, problems)
}

// isInXRD reports whether a problem of a CRD is in a value that Crossplane takes from the XRD: the conversion, a name,
// and in the schemas the properties of spec and status. It sets the types of these two itself. The schema of the XRD
// reports missing names.
func isInXRD(p Problem) bool {
	if strings.HasPrefix(p.Path, "spec.names") {
		return !strings.HasPrefix(p.Message, "Required value")
	}
	if strings.HasPrefix(p.Path, "spec.conversion") {
		return true
	}
	for _, property := range []string{"spec", "status"} {
		_, rest, found := strings.Cut(p.Path, "openAPIV3Schema.properties["+property+"]")
		if found && rest != ".type" {
			return true
		}
	}
	return false
}

// crdsOfXRD returns a CRD with the names, the conversion and the schemas of an XRD, and one with the names of its claim,
// or nil if it has none.
func (c *objectChecker) crdsOfXRD() (composite, claim []byte, err error) {
	var xrd struct {
		Spec struct {
			Group      string         `json:"group"`
			Names      map[string]any `json:"names"`
			ClaimNames map[string]any `json:"claimNames"`
			Conversion map[string]any `json:"conversion"`
			Versions   []struct {
				Name   string          `json:"name"`
				Schema json.RawMessage `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(c.text, &xrd); err != nil {
		return nil, nil, err
	}
	var versions []map[string]any
	for i, v := range xrd.Spec.Versions {
		versions = append(versions, map[string]any{"name": v.Name, "served": true, "storage": i == 0, "schema": v.Schema})
	}
	crd := func(names map[string]any, versions any) ([]byte, error) {
		spec := map[string]any{"group": xrd.Spec.Group, "names": names, "scope": "Cluster", "versions": versions}
		if xrd.Spec.Conversion != nil {
			spec["conversion"] = xrd.Spec.Conversion
		}
		return json.Marshal(map[string]any{
			"apiVersion": kinds.GroupCRD + "/" + crdV1, "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": fmt.Sprint(names["plural"], ".", xrd.Spec.Group)}, "spec": spec,
		})
	}
	if composite, err = crd(xrd.Spec.Names, versions); err != nil || xrd.Spec.ClaimNames == nil {
		return composite, nil, err
	}
	schema := map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}
	claim, err = crd(xrd.Spec.ClaimNames, []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": schema}})
	return composite, claim, err
}
