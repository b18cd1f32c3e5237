package apply

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/xpkg-dev/xpkg/pkg/plan"
	"github.com/xpkg-dev/xpkg/pkg/xpkg/crd"
)

// establishing is longer than an API server usually needs until it serves a definition that was written. A read that
// others share may not show the names of one that was written a shorter time ago.
const establishing = 5 * time.Second

// definitionWrites records the last write of a definition in each API group. It is safe for concurrent use.
type definitionWrites struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// record records the write of an object, if it is a definition.
func (w *definitionWrites) record(ref plan.Ref) {
	if !defines(ref.Kind) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[string]time.Time{}
	}
	w.last[groupOf(ref)] = time.Now()
}

// isQuiet reports whether shared reads show the definitions of all groups.
func (w *definitionWrites) isQuiet(groups map[string]bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for group := range groups {
		if at, ok := w.last[group]; ok && time.Since(at) < establishing {
			return false
		}
	}
	return true
}

// groupOf returns the group of the kinds of a CRD, an XRD or an MRD.
func groupOf(ref plan.Ref) string {
	_, group, _ := strings.Cut(ref.Name, ".")
	return group
}

// definition returns the definition in the content of the plan.
func (f *preflight) definition(ref plan.Ref) (definition, error) {
	raw, err := f.content(ref)
	if err != nil {
		return definition{}, err
	}
	return parseDefinition(ref, raw)
}

func parseDefinition(ref plan.Ref, raw []byte) (d definition, err error) {
	if err := json.Unmarshal(raw, &d); err != nil {
		return d, ErrContent.New(err, "read %s %s", ref.Kind, ref.Name)
	}
	return d, nil
}

// definition is the part of a CRD, an XRD or an MRD that Preflight compares.
type definition struct {
	Spec struct {
		Group string          `json:"group"`
		Scope string          `json:"scope"`
		Names definitionNames `json:"names"`
		// ClaimNames are the names of the claim of an XRD.
		ClaimNames definitionNames `json:"claimNames"`
		Conversion struct {
			Strategy string `json:"strategy"`
		} `json:"conversion"`
		Versions []struct {
			Name    string `json:"name"`
			Served  bool   `json:"served"`
			Storage bool   `json:"storage"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions     []definitionCondition `json:"conditions"`
		StoredVersions []string              `json:"storedVersions"`
	} `json:"status"`
}

type definitionCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

type definitionNames struct {
	Plural     string   `json:"plural"`
	Singular   string   `json:"singular"`
	Kind       string   `json:"kind"`
	ListKind   string   `json:"listKind"`
	ShortNames []string `json:"shortNames"`
}

// kinds returns the names of the kinds of a definition: two for an XRD with a claim.
func (d *definition) kinds() []plan.Names {
	var out []plan.Names
	for _, n := range []definitionNames{d.Spec.Names, d.Spec.ClaimNames} {
		if n.Plural == "" {
			continue
		}
		singular, list := n.Singular, n.ListKind
		if singular == "" {
			singular = strings.ToLower(n.Kind)
		}
		if list == "" {
			list = n.Kind + "List"
		}
		out = append(out, plan.Names{
			Plural: n.Plural, Resources: append([]string{n.Plural, singular}, n.ShortNames...), Kinds: []string{n.Kind, list},
		})
	}
	return out
}

func decodeDefinition(ref plan.Ref, raw []byte) (plan.Definition, error) {
	d, err := parseDefinition(ref, raw)
	if err != nil {
		return plan.Definition{}, err
	}
	s := d.Spec
	out := plan.Definition{
		Group: s.Group, Plural: s.Names.Plural, Kind: s.Names.Kind, Scope: s.Scope, Stored: d.Status.StoredVersions,
		Webhook: s.Conversion.Strategy == string(apiextensionsv1.WebhookConverter),
	}
	for _, v := range s.Versions {
		out.Versions = append(out.Versions, v.Name)
		if v.Served {
			out.Served = append(out.Served, v.Name)
		}
		if v.Storage {
			out.Storage = v.Name
		}
	}
	if ref.Kind == kindXRD {
		return compositeDefinition(ref, out), nil
	}
	out.Established = d.isEstablished()
	return out, nil
}

// isEstablished reports whether the API server serves the kind of a CRD.
func (d *definition) isEstablished() bool { return d.has(apiextensionsv1.Established) }

// has reports whether a condition of a CRD is true.
func (d *definition) has(condition apiextensionsv1.CustomResourceDefinitionConditionType) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c definitionCondition) bool {
		return c.Type == string(condition) && c.Status == string(apiextensionsv1.ConditionTrue)
	})
}

// compositeDefinition returns a definition with the fields of an XRD. No objects are stored in its versions, and it is
// immutable from the start.
func compositeDefinition(ref plan.Ref, d plan.Definition) plan.Definition {
	d.Established, d.Plural, d.Kind = true, "", ""
	d.Scope = string(crd.ScopeOfXRD(ref.APIVersion, apiextensionsv1.ResourceScope(d.Scope)))
	return d
}
