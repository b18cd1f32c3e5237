package apply

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// readsAtOnce is the maximum number of concurrent reads of definitions.
const readsAtOnce = 16

// kindXRD is the kind with which packages define resources through Crossplane.
const kindXRD = "CompositeResourceDefinition"

// Preflight returns the plan with a refusal for each CRD and XRD that the API server would reject or not
// serve: one that changes an immutable field, drops a version in which objects are stored, has the name of
// another kind, or a version that an aggregated API serves. It reads only objects whose content the plan
// writes. To a change that drops a version in which custom resources can be stored, it adds their migration.
//
// It also refuses changes of a CRD that break custom resources of its kind, which it reads if the schema changes in a
// way that can break some, and adds the judgement to the plan.
func (c *Cluster) Preflight(ctx context.Context, p plan.Plan, content Content, breaks Breaks) (plan.Plan, error) {
	if err := checkMetadata(p.Changes); err != nil {
		return p, err
	}
	f := preflight{
		cluster: c, content: content, breaks: breaks, judging: make(chan struct{}, judgesAtOnce),
		refusals: slices.Clone(p.Refusals),
	}
	p.Changes = slices.Clone(p.Changes)
	group, going := errgroup.WithContext(ctx)
	group.SetLimit(readsAtOnce)
	var created, written []plan.Ref
	for i := range p.Changes {
		ch := &p.Changes[i]
		if ch.MetadataOnly {
			continue
		}
		definition := defines(ch.Ref.Kind)
		if definition {
			written = append(written, ch.Ref)
		}
		switch {
		case ch.Action != plan.Create:
			group.Go(func() error { return f.update(going, ch) })
		case definition:
			created = append(created, ch.Ref)
		}
	}
	if err := group.Wait(); err != nil {
		return p, classify(err, "check for changes that the API server rejects")
	}
	if err := f.names(ctx, created); err != nil {
		return p, err
	}
	if err := f.held(ctx, p.Changes); err != nil {
		return p, err
	}
	if err := f.aggregated(ctx, written); err != nil {
		return p, err
	}
	slices.SortFunc(f.judgements, func(a, b plan.Judgement) int { return strings.Compare(a.CRD, b.CRD) })
	f.explainBreaks()
	slices.SortStableFunc(f.refusals, func(a, b plan.Refusal) int { return a.Ref.Compare(b.Ref) })
	p.Refusals, p.Judgements = f.refusals, f.judgements
	return p, nil
}

func defines(kind string) bool {
	return kind == plan.DefinitionKind || kind == kindXRD
}

// preflight collects refusals and judgements.
type preflight struct {
	cluster *Cluster
	content Content
	breaks  Breaks
	// judging has a place for each kind that is judged.
	judging    chan struct{}
	mu         sync.Mutex
	refusals   []plan.Refusal
	judgements []plan.Judgement
}

func (f *preflight) refuse(r ...plan.Refusal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refusals = append(f.refusals, r...)
}

// update compares a live object with the one that replaces it.
func (f *preflight) update(ctx context.Context, ch *plan.Change) error {
	if fixedFields[ch.Ref.Kind] != nil {
		exists, err := f.fixed(ctx, ch.Ref)
		if err != nil || !exists && ch.Ref.Kind == kindXRD {
			return err
		}
	}
	if !defines(ch.Ref.Kind) {
		return nil
	}
	content, err := f.content(ch.Ref)
	if err != nil {
		return err
	}
	want, err := decodeDefinition(ch.Ref, content)
	if err != nil {
		return err
	}
	// Crossplane updates the CRD of an XRD or MRD to its spec.
	raw, exists, err := f.cluster.object(ctx, plan.DefinitionRef(ch.Ref.Name))
	if err != nil || !exists {
		return err
	}
	live, err := decodeDefinition(plan.DefinitionRef(ch.Ref.Name), raw)
	if err != nil {
		return err
	}
	var refused []plan.Refusal
	if ch.Ref.Kind != kindXRD {
		refused = plan.Immutable(ch.Ref, live, want)
	}
	if ch.Ref.Kind == plan.DefinitionKind {
		refused = append(refused, plan.Unserved(ch.Ref, want)...)
		f.refuse(refused...)
	}
	if len(refused) > 0 {
		return nil
	}
	if err := unlessMigrating(ch.Ref.Name, raw); err != nil {
		return err
	}
	if err := f.migrate(ctx, ch, raw, live, want); err != nil {
		return err
	}
	if ch.Ref.Kind == kindXRD {
		if err := f.migrateClaims(ctx, ch, content, want); err != nil {
			return err
		}
		return f.judgeComposites(ctx, ch, content)
	}
	return f.judge(ctx, ch, raw, content)
}

// Unserved returns a refusal for each of some CRDs that serves none of its versions. Preflight refuses them only in
// updates, because it does not read the content of new CRDs.
func Unserved(names []string, content Content) ([]plan.Refusal, error) {
	var out []plan.Refusal
	for _, name := range names {
		raw, err := content(plan.DefinitionRef(name))
		if err != nil {
			return nil, err
		}
		want, err := decodeDefinition(plan.DefinitionRef(name), raw)
		if err != nil {
			return nil, err
		}
		out = append(out, plan.Unserved(plan.DefinitionRef(name), want)...)
	}
	return out, nil
}

// wanted returns the definition in the content of the plan.
func (f *preflight) wanted(ref plan.Ref) (plan.Definition, error) {
	raw, err := f.content(ref)
	if err != nil {
		return plan.Definition{}, err
	}
	return decodeDefinition(ref, raw)
}

// names refuses new definitions with the names of another kind in their group. It reads the content of the group only
// if the API server already serves it, or if an XRD defines kinds of it.
func (f *preflight) names(ctx context.Context, created []plan.Ref) error {
	if len(created) == 0 {
		return nil
	}
	groups := map[string]bool{}
	for _, ref := range created {
		groups[groupOf(ref)] = true
	}
	taken, err := f.cluster.names(ctx, groups)
	if err != nil {
		return err
	}
	if err := f.cluster.addComposites(ctx, groups, taken); err != nil {
		return err
	}
	for _, ref := range created {
		if len(taken[groupOf(ref)]) == 0 {
			continue
		}
		d, err := f.definition(ref)
		if err != nil {
			return err
		}
		for _, names := range d.kinds() {
			f.refuse(plan.NamesTaken(ref, names, taken[groupOf(ref)])...)
		}
	}
	return nil
}

// object reads a live object completely.
func (c *Cluster) object(ctx context.Context, ref plan.Ref) (raw []byte, exists bool, err error) {
	folder, err := collection(ref)
	if err != nil {
		return nil, false, err
	}
	raw, err = c.get(ctx, runtime.ContentTypeJSON, nil, folder, ref.Name)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read %s %s: %w", ref.Kind, ref.Name, err)
	}
	return raw, true, nil
}

// fewGroups is the number of groups up to which each is looked up by itself first: the document with the kinds of all
// groups grows with the cluster.
const fewGroups = 3

// names returns the names of the kinds that the API server serves, by group: those of some groups at least. It only
// reads them if the API server serves one of the groups.
func (c *Cluster) names(ctx context.Context, groups map[string]bool) (map[string][]plan.Names, error) {
	served, err := c.anyServed(ctx, groups)
	if err != nil || !served {
		return map[string][]plan.Names{}, err
	}
	doc, err := c.discover(ctx, "/apis")
	if err != nil {
		return nil, err
	}
	out := map[string][]plan.Names{}
	for _, group := range doc.Items {
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				n := plan.Names{Plural: r.Resource, Resources: append([]string{r.Resource, r.SingularResource}, r.ShortNames...)}
				if r.ResponseKind != nil {
					n.Kinds = []string{r.ResponseKind.Kind, r.ResponseKind.Kind + "List"}
				}
				if !slices.ContainsFunc(out[group.Name], func(o plan.Names) bool { return o.Plural == n.Plural }) {
					out[group.Name] = append(out[group.Name], n)
				}
			}
		}
	}
	return out, nil
}

// anyServed reports whether the API server serves one of some groups; it may report so without a read for many groups.
// Reads that packages share show it, unless this process has just written a definition in one of the groups: the last
// discovery, or the APIServices, of which the API server has one for each version of a group.
func (c *Cluster) anyServed(ctx context.Context, groups map[string]bool) (bool, error) {
	if c.definitions.isQuiet(groups) {
		if d, ok := c.served.Last(Recent); ok && !d.serves(groups) {
			return false, nil
		}
		services, err := c.services.Get(ctx, Recent, c.apiServices)
		if served, known := services.serves(groups); err != nil || known {
			return served, err
		}
	}
	if len(groups) > fewGroups {
		return true, nil
	}
	for group := range groups {
		var doc metav1.APIGroup
		if found, err := c.discoverGroup(ctx, &doc, "/apis/"+group); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

// kindNotServed is the reason why the custom resources of a kind cannot be counted.
const kindNotServed = "the API server does not serve the kind"
