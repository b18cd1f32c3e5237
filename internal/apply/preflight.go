package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/pause"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// readsAtOnce is the maximum number of concurrent reads of definitions.
const readsAtOnce = 16

// kindXRD and kindMRD define resources through Crossplane.
const (
	kindXRD = "CompositeResourceDefinition"
	kindMRD = "ManagedResourceDefinition"
)

// Preflight returns the plan with a refusal for each CRD, XRD and MRD that the API server would reject or not
// serve: one that changes an immutable field, drops a version in which objects are stored, has the name of
// another kind, or a version that an aggregated API serves. It reads only objects whose content the plan
// writes. A dropped version of a kind without custom resources is pruned with the write.
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
	return kind == plan.DefinitionKind || kind == kindXRD || kind == kindMRD
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
	raw, exists, err := f.cluster.object(ctx, crdRef(ch.Ref.Name))
	if err != nil || !exists {
		return err
	}
	live, err := decodeDefinition(crdRef(ch.Ref.Name), raw)
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
	dropped := plan.DroppedStored(live, want)
	switch {
	case len(refused) > 0:
		return nil
	case len(dropped) == 0 && ch.Ref.Kind == kindXRD:
		return f.judgeComposites(ctx, ch, content)
	case len(dropped) == 0:
		return f.judge(ctx, ch, raw, content)
	}
	empty, unknown, err := f.cluster.empty(ctx, live)
	switch {
	case err != nil:
		return err
	case empty && ch.Ref.Kind == plan.DefinitionKind:
		ch.PruneStored = dropped
	default:
		f.refuse(plan.StoredVersions(ch.Ref, packageOf(*ch), live, want, dropped, unknown))
	}
	return nil
}

// Unserved returns a refusal for each of some CRDs that serves none of its versions. Preflight refuses them only in
// updates, because it does not read the content of new CRDs.
func Unserved(names []string, content Content) ([]plan.Refusal, error) {
	var out []plan.Refusal
	for _, name := range names {
		raw, err := content(crdRef(name))
		if err != nil {
			return nil, err
		}
		want, err := decodeDefinition(crdRef(name), raw)
		if err != nil {
			return nil, err
		}
		out = append(out, plan.Unserved(crdRef(name), want)...)
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

// empty reports whether a CRD has no custom resources. Unknown is the reason why that
// cannot be read.
func (c *Cluster) empty(ctx context.Context, d plan.Definition) (empty bool, unknown string, err error) {
	if len(d.Served) == 0 {
		return false, "no version is served", nil
	}
	raw, err := c.get(ctx, metadataList, map[string]string{"limit": "1"}, "/apis", d.Group, d.Served[0], d.Plural)
	switch {
	case apierrors.IsForbidden(err):
		return false, "xpkg is not allowed to list them", nil
	case apierrors.IsNotFound(err):
		return false, kindNotServed, nil
	case err != nil:
		return false, "", fmt.Errorf("list the custom resources of %s.%s: %w", d.Plural, d.Group, err)
	}
	var page struct {
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(raw, &page); err != nil {
		return false, "", err
	}
	return len(page.Items) == 0, "", nil
}

// kindNotServed is the reason why the custom resources of a kind cannot be counted.
const kindNotServed = "the API server does not serve the kind"

const (
	// servedTries is the number of attempts to read a kind whose CRD was just written, and servedPause the pause after
	// the first of them. Each further pause is twice as long.
	servedTries = 8
	servedPause = 50 * time.Millisecond
)

// emptyOnceServed is like empty for a CRD that was just written. It retries until the API server serves the kind.
func (c *Cluster) emptyOnceServed(ctx context.Context, d plan.Definition) (empty bool, unknown string, err error) {
	for try := 0; ; try++ {
		empty, unknown, err = c.empty(ctx, d)
		if unknown != kindNotServed || try == servedTries || pause.For(ctx, servedPause<<try) != nil {
			return empty, unknown, err
		}
	}
}

// withDropped returns the content of a CRD with dropped versions that are not served, so
// that the API server moves the storage version and keeps the dropped ones readable.
func withDropped(content []byte, dropped []string) ([]byte, error) {
	object := map[string]json.RawMessage{}
	if err := json.Unmarshal(content, &object); err != nil {
		return nil, err
	}
	spec := map[string]json.RawMessage{}
	if err := json.Unmarshal(object["spec"], &spec); err != nil {
		return nil, err
	}
	versions := bytes.TrimSpace(spec["versions"])
	if len(versions) < 2 || versions[len(versions)-1] != ']' {
		return nil, errors.New("spec.versions is not a list")
	}
	out := slices.Clone(versions[:len(versions)-1])
	for _, v := range dropped {
		out = fmt.Appendf(
			out,
			`,{"name":%q,"served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}`,
			v,
		)
	}
	spec["versions"] = append(out, ']')
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	object["spec"] = raw
	return json.Marshal(object)
}

// withStored returns the content of CRDs with the versions that a change drops.
func withStored(content Content, dropped []string) Content {
	return func(ref plan.Ref) ([]byte, error) {
		raw, err := content(ref)
		if err != nil {
			return nil, err
		}
		return withDropped(raw, dropped)
	}
}

// pruneStored prepares a CRD for a write that drops stored versions: it moves the storage
// version, checks that no custom resource was created meanwhile, and removes the dropped
// versions from status.storedVersions. It returns the change with the resourceVersion
// after that. If it is interrupted, every version stays readable.
func (c *Cluster) pruneStored(
	ctx context.Context, folder string, ch plan.Change, content Content,
) (plan.Change, error) {
	moved := ch
	moved.PruneStored, moved.Annotations = nil, map[string]string{}
	for k, v := range ch.Annotations {
		if k != plan.ContentDigestAnnotation {
			moved.Annotations[k] = v
		}
	}
	// The object lacks the content digest, so that the next plan after an interruption writes it.
	moved.Annotations[plan.ContentDigestAnnotation] = "moving-storage-version"
	if _, err := c.write(ctx, moved, withStored(content, ch.PruneStored)); err != nil {
		return ch, err
	}
	live, _, err := c.definition(ctx, ch.Ref)
	if err != nil {
		return ch, err
	}
	empty, unknown, err := c.emptyOnceServed(ctx, live)
	if err != nil {
		return ch, err
	}
	if !empty {
		return ch, Refused(
			[]plan.Refusal{plan.StoredVersions(ch.Ref, packageOf(ch), live, live, ch.PruneStored, unknown)}, "update %s",
			ch.Ref.Name,
		)
	}
	m, err := c.setStoredVersions(ctx, folder, ch.Ref.Name, ch.UID, "", live.Storage)
	if err != nil {
		return ch, err
	}
	ch.ResourceVersion, ch.PruneStored = m.Metadata.ResourceVersion, nil
	return ch, nil
}

// packageOf returns the package that owns a CRD before a change, as "kind/name", or an empty string.
func packageOf(ch plan.Change) string {
	if ch.Ref.Kind != plan.DefinitionKind || ch.Action == plan.Adopt {
		return ""
	}
	for _, o := range ch.Owners {
		group, _, _ := strings.Cut(o.APIVersion, "/")
		if kind := v1.KindNamed(o.Kind); group == v1.Group && kind != "" {
			return v1.ObjectName(kind, o.Name)
		}
	}
	return ""
}
