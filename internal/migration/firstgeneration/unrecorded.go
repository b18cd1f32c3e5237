package firstgeneration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// maxUnrecorded limits the CRDs in a note.
const maxUnrecorded = 10

// unrecorded returns a note for each Provider whose package contains CRDs that exist, that the record does not list, and that the
// Provider may therefore not take over. Providers that the manager runs already report such CRDs themselves.
func (m *Migration) unrecorded(ctx context.Context, s *snapshot) []string {
	var out []string
	for _, c := range s.contents {
		var refusals []plan.Refusal
		err := c.err
		if err == nil {
			refusals, err = m.refusals(ctx, c)
		}
		if err != nil {
			out = append(out, fmt.Sprintf("The package %s cannot be read here (%s). If the cluster has CRDs of the package that the record of %s does not list, the manager reports them as NeedsAdoption.",
				c.of.reference, errcode.From(err), c.of.describe()))
			continue
		}
		if len(refusals) > 0 {
			out = append(out, describeUnrecorded(c.of, refusals))
		}
	}
	return out
}

func describeUnrecorded(in *install, refusals []plan.Refusal) string {
	var adopted, foreign []string
	for _, r := range refusals {
		if r.Cause == plan.NeedsAdoption {
			adopted = append(adopted, r.Ref.Name)
		} else {
			foreign = append(foreign, r.Reason)
		}
	}
	text := fmt.Sprintf("The package %s contains CRDs that the cluster has, and that the record of %s does not list.", in.reference, in.describe())
	if len(adopted) > 0 {
		text += fmt.Sprintf(" The Provider waits for your consent to adopt %s (NeedsAdoption): review them, and run `xpkg approve provider/%s` when the manager runs.",
			wording.Few(adopted, maxUnrecorded, ", "), in.provider)
	}
	if len(foreign) > 0 {
		text += fmt.Sprintf(" The Provider cannot take over others: %s.", wording.Few(foreign, maxUnrecorded, "; "))
	}
	return text
}

// refusals returns why the Provider of an install object cannot take over CRDs of its package that the record does not list.
func (m *Migration) refusals(ctx context.Context, c *content) ([]plan.Refusal, error) {
	in := c.of
	objects, err := desired.Of(c.pkg, desired.Options{Package: in.provider})
	if err != nil {
		return nil, err
	}
	live, err := m.Cluster.Metadata(ctx, objects.Refs())
	if err != nil {
		return nil, err
	}
	p := &v1.Provider{}
	p.Name = in.provider
	var out []plan.Refusal
	for _, r := range plan.Establish(objects.Desired(), live, nil, revision.Requester(p, p.NewRevision(), nil)).Refusals {
		isRecorded := slices.ContainsFunc(in.crds, func(crd *apiextensionsv1.CustomResourceDefinition) bool { return crd.Name == r.Ref.Name })
		if r.Ref.Kind == plan.DefinitionKind && !isRecorded {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b plan.Refusal) int { return strings.Compare(a.Ref.Name, b.Ref.Name) })
	return out, nil
}
