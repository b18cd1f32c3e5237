package firstgeneration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/apply"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/desired"
	"github.com/xpkg-dev/xpkg/pkg/errcode"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// maxUnrecorded limits the CRDs in a note.
const maxUnrecorded = 10

// unrecorded returns a note for each Provider whose package contains CRDs of users that the record does not list, and
// that the Provider takes over only with consent. Providers that the manager runs already report such CRDs themselves.
func (m *Migration) unrecorded(s *snapshot) []string {
	var out []string
	for _, c := range s.contents {
		if c.err != nil {
			out = append(out,
				fmt.Sprintf("The package %s cannot be read here (%s). If the cluster has CRDs of the package that the record of %s does not list, the manager reports them as NeedsAdoption.",
					c.of.reference, errcode.From(c.err), c.of.describe()))
			continue
		}
		var names []string
		for _, r := range c.refusals {
			if r.Cause == plan.NeedsAdoption {
				names = append(names, r.Ref.Name)
			}
		}
		if len(names) > 0 {
			out = append(out,
				fmt.Sprintf("The package %s contains CRDs that the cluster has, and that the record of %s does not list."+
					" The Provider waits for your consent to adopt %s (NeedsAdoption): review them, and run `xpkg approve provider/%s` when the manager runs.",
					c.of.reference, c.of.describe(), wording.Few(names, maxUnrecorded, ", "), c.of.provider))
		}
	}
	return out
}

// refusals returns why the Provider of an install object could not take over CRDs of its package: another owner has a
// CRD that no record lists, or the API server would reject the CRD of the package.
func (m *Migration) refusals(ctx context.Context, s *snapshot, c *content) ([]plan.Refusal, error) {
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
		if r.Ref.Kind == plan.DefinitionKind && !s.records(in.provider, r.Ref.Name) {
			out = append(out, r)
		}
	}
	var writes plan.Plan
	for _, ref := range objects.Refs() {
		if ref.Kind != plan.DefinitionKind || slices.ContainsFunc(out, func(r plan.Refusal) bool { return r.Ref == ref }) {
			continue
		}
		change := plan.Change{Action: plan.Create, Ref: ref}
		if found, exists := live[ref]; exists {
			change = plan.Change{
				Action: plan.Update, Ref: ref, UID: found.UID, ResourceVersion: found.ResourceVersion, Owners: found.Owners,
			}
		}
		writes.Changes = append(writes.Changes, change)
	}
	if writes, err = m.Cluster.Preflight(ctx, writes, objects.Content, apply.Breaks{}); err != nil {
		return nil, err
	}
	out = append(out, writes.Refusals...)
	slices.SortFunc(out, func(a, b plan.Refusal) int { return strings.Compare(a.Ref.Name, b.Ref.Name) })
	return out, nil
}
