package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/xpkg-dev/xpkg/internal/apply/limiter"
	"github.com/xpkg-dev/xpkg/internal/pause"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// conversionLasts is the time after which a conversion webhook serves with a changed certificate.
const conversionLasts = 90 * time.Second

// migrate adds the migration of the custom resources of a CRD to a change that drops versions in which they can be
// stored, or a refusal if they cannot be migrated. It writes nothing: a dry run shows whether they can be rewritten.
func (f *preflight) migrate(ctx context.Context, ch *plan.Change, raw []byte, live, want plan.Definition) error {
	dropped := plan.DroppedStored(live, want)
	if len(dropped) == 0 {
		return nil
	}
	m := plan.StorageMigration{
		CRD: live.Plural + "." + live.Group, Kind: live.Kind, Dropped: dropped,
		Storage: plan.StorageBetween(ch.Ref.Kind, live, want),
	}
	refuse := func(why string) error {
		f.refuse(plan.StoredVersions(ch.Ref, live, want, dropped, why))
		return nil
	}
	objects, first, why, err := f.cluster.count(ctx, live)
	switch {
	case err != nil:
		return err
	case why != "":
		return refuse("it is not known whether any exist: " + why)
	case m.Storage == "" && (objects > 0 || ch.Ref.Kind != plan.DefinitionKind):
		return refuse("")
	case m.Storage == "":
		m.Storage = want.Storage
	}
	if m.Objects = objects; objects > 0 {
		folder := "/apis/" + live.Group + "/" + live.Served[0]
		_, err := f.cluster.rewrite(ctx, folder, live.Plural, first, nil, true)
		if apierrors.IsForbidden(err) || deniedByAdmission(err) || isRejected(err) {
			return refuse("they cannot be rewritten: " + wording.ClipCharacters(err.Error(), maxReasonInText))
		}
		if err != nil && !conversionFailed(err) {
			return fmt.Errorf("rewrite a custom resource of %s in a dry run: %w", m.CRD, err)
		}
		if slices.Contains(live.Versions, m.Storage) {
			if m.DropFields, err = f.judgeStorage(ctx, ch, raw, live, m); err != nil {
				return err
			}
		}
	}
	ch.Migrations = append(ch.Migrations, m)
	return nil
}

// migrateClaims does for the claims of an XRD what migrate does for its composite resources.
func (f *preflight) migrateClaims(ctx context.Context, ch *plan.Change, content []byte, want plan.Definition) error {
	xrd, err := parseDefinition(ch.Ref, content)
	if err != nil || xrd.Spec.ClaimNames.Plural == "" {
		return err
	}
	ref := plan.DefinitionRef(xrd.Spec.ClaimNames.Plural + "." + xrd.Spec.Group)
	raw, exists, err := f.cluster.object(ctx, ref)
	if err != nil || !exists {
		return err
	}
	live, err := decodeDefinition(ref, raw)
	if err != nil {
		return err
	}
	return f.migrate(ctx, ch, raw, live, want)
}

// count returns the number of custom resources of a CRD, and the first of them. Why is the reason why that cannot be
// read. Every version lists all of them, and a version that was just added is not served yet.
func (c *Cluster) count(ctx context.Context, d plan.Definition) (n int, first partial, why string, err error) {
	if len(d.Served) == 0 {
		return 0, first, "no version is served", nil
	}
	var raw []byte
	for _, version := range d.Served {
		raw, err = c.get(ctx, metadataList, map[string]string{"limit": "1"}, "/apis", d.Group, version, d.Plural)
		if !apierrors.IsNotFound(err) {
			break
		}
	}
	switch {
	case apierrors.IsForbidden(err):
		return 0, first, "xpkg is not allowed to list them", nil
	case apierrors.IsNotFound(err):
		return 0, first, kindNotServed, nil
	case err != nil:
		return 0, first, "", fmt.Errorf("list the custom resources of %s.%s: %w", d.Plural, d.Group, err)
	}
	var page struct {
		Metadata metav1.ListMeta `json:"metadata"`
		Items    []partial       `json:"items"`
	}
	if err := json.Unmarshal(raw, &page); err != nil || len(page.Items) == 0 {
		return 0, first, "", err
	}
	n = len(page.Items)
	if rest := page.Metadata.RemainingItemCount; rest != nil {
		n += int(*rest)
	}
	return n, page.Items[0], "", nil
}

// judgeStorage judges whether custom resources lose fields when they are stored in the version of a migration, and
// reports whether a user accepts that.
func (f *preflight) judgeStorage(
	ctx context.Context, ch *plan.Change, raw []byte, live plan.Definition, m plan.StorageMigration,
) (accepted bool, err error) {
	live.Storage = m.Storage
	formers, err := formerSchemas(raw, live, slices.DeleteFunc(slices.Clone(live.Stored), func(v string) bool {
		return v == m.Storage
	}))
	if err != nil || len(formers) == 0 {
		return false, err
	}
	accepts := func(rule string) bool { return slices.Contains(f.breaks.Accepted, m.CRD+"/"+rule) }
	j, err := f.cluster.lossOf(ctx, live, formers, accepts)
	if err != nil {
		return false, err
	}
	j.CRD, j.Kind, j.Version = m.CRD, m.Kind, m.Storage
	j.Sort()
	refusal, refused := j.Refusal(ch.Ref)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(j.Findings) > 0 {
		f.judgements = append(f.judgements, j)
	}
	if refused {
		f.refusals = append(f.refusals, refusal)
	}
	return len(j.Findings) > 0 && !refused, nil
}

// lossOf judges which custom resources of a CRD lose fields of former versions.
func (c *Cluster) lossOf(
	ctx context.Context, d plan.Definition, formers []formerSchema, accepts func(rule string) bool,
) (plan.Judgement, error) {
	if i := slices.IndexFunc(formers, func(s formerSchema) bool { return !s.readable }); i >= 0 {
		return unread(fmt.Sprintf("the API server does not serve both %s and %s", formers[i].version, d.Storage), accepts), nil
	}
	var out plan.Judgement
	var mu sync.Mutex
	group, going := errgroup.WithContext(ctx)
	group.SetLimit(rewritesAtOnce)
	seen := map[string]bool{}
	err := each(going, c, "/apis/"+d.Group+"/"+d.Storage+"/"+d.Plural, func(live metav1.PartialObjectMetadata) {
		p := partialOf(live)
		if seen[p.name()] {
			return
		}
		seen[p.name()] = true
		group.Go(func() error {
			lost, err := c.lostBy(going, d, p, formers)
			if err != nil {
				return err
			}
			var broken []plan.JudgedRule
			for _, path := range lost {
				rule := string(crddiff.FieldRemoved)
				broken = append(broken, plan.JudgedRule{
					Rule: rule, Path: path, Text: "is not in " + d.Storage + ", in which it is stored",
					Accepted: accepts(rule),
				})
			}
			mu.Lock()
			defer mu.Unlock()
			out.Add(p.name(), broken)
			return nil
		})
	})
	if failed := group.Wait(); failed != nil {
		err = failed
	}
	if isInternal(err) {
		return unread(wording.ClipCharacters(err.Error(), maxReasonInText), accepts), nil
	}
	return out, err
}

// migrate carries out the migrations of changes, and returns the changes with the resourceVersions after that. Until a
// change itself is written, every version of its CRD stays served, so an interruption leaves each custom resource
// readable, and the next plan continues.
func (c *Cluster) migrate(ctx context.Context, changes []plan.Change, content Content) ([]plan.Change, error) {
	if c.dryRun || !slices.ContainsFunc(changes, func(ch plan.Change) bool { return len(ch.Migrations) > 0 }) {
		return changes, nil
	}
	changes = slices.Clone(changes)
	var migrating []*plan.Change
	for i := range changes {
		if len(changes[i].Migrations) > 0 {
			migrating = append(migrating, &changes[i])
		}
	}
	inParallel := func(step func(context.Context, *plan.Change) error) error {
		group, going := errgroup.WithContext(ctx)
		group.SetLimit(limiter.MaxLimit)
		for _, ch := range migrating {
			group.Go(func() error {
				if err := step(going, ch); err != nil {
					return classify(err, "migrate the custom resources of %s %s", ch.Ref.Kind, ch.Ref.Name)
				}
				return nil
			})
		}
		return group.Wait()
	}
	move := func(ctx context.Context, ch *plan.Change) error { return c.moveStorage(ctx, *ch, content) }
	if err := inParallel(move); err != nil {
		return nil, err
	}
	if err := pause.For(ctx, c.settles); err != nil {
		return nil, ErrStopped.New(err, "migrate custom resources")
	}
	return changes, inParallel(c.rewriteStored)
}

// moveStorage makes the API server store the custom resources of a CRD in the version of its migration.
func (c *Cluster) moveStorage(ctx context.Context, ch plan.Change, content Content) error {
	if ch.Ref.Kind != plan.DefinitionKind {
		return nil // Its storage version stays.
	}
	intermediate, err := c.intermediate(ctx, ch, content)
	if intermediate == nil || err != nil {
		return err
	}
	ch.Annotations = maps.Clone(ch.Annotations)
	if ch.Annotations == nil {
		ch.Annotations = map[string]string{}
	}
	// The object lacks the content digest, so that the next plan after an interruption writes it.
	ch.Annotations[plan.ContentDigestAnnotation] = "moving-storage-version"
	_, err = c.write(ctx, ch, func(plan.Ref) ([]byte, error) { return intermediate, nil })
	return err
}

// intermediate returns the CRD that stores custom resources in the version of the migration of a change, and serves all
// versions: the live CRD, or the new one with the versions that it drops if the live one does not have that version. It
// returns nil if the live CRD stores them there.
func (c *Cluster) intermediate(ctx context.Context, ch plan.Change, content Content) ([]byte, error) {
	raw, exists, err := c.object(ctx, ch.Ref)
	if err != nil {
		return nil, err
	}
	var now partial
	if err := json.Unmarshal(raw, &now); exists && err != nil {
		return nil, err
	}
	if !exists || now.Metadata.UID != ch.UID || now.Metadata.ResourceVersion != ch.ResourceVersion {
		return nil, ErrMoved.New(nil, "another client has changed %s %s", ch.Ref.Kind, ch.Ref.Name)
	}
	if err := unlessMigrating(ch.Ref.Name, raw); err != nil {
		return nil, err
	}
	m := ch.Migrations[0]
	live, err := versionsOf(raw)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(live.versions, func(v crdVersion) bool { return v.name == m.Storage }); i >= 0 {
		if live.versions[i].storage {
			return nil, nil
		}
		return live.with(live.versions, m.Storage)
	}
	want, err := content(ch.Ref)
	if err != nil {
		return nil, err
	}
	return extended(want, live, m)
}

// extended returns a new CRD with the versions that a migration drops, as they are in the live one.
func extended(content []byte, live crdObject, m plan.StorageMigration) ([]byte, error) {
	want, err := versionsOf(content)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(want.versions)
	for _, v := range live.versions {
		if slices.Contains(m.Dropped, v.name) {
			all = append(all, v)
		}
	}
	return want.with(all, m.Storage)
}

// withStored returns the content of a CRD with the versions that its migration drops.
func (c *Cluster) withStored(ctx context.Context, ch plan.Change, content Content) (Content, error) {
	raw, exists, err := c.object(ctx, ch.Ref)
	if err != nil || !exists {
		return content, err
	}
	live, err := versionsOf(raw)
	if err != nil {
		return nil, err
	}
	return func(ref plan.Ref) ([]byte, error) {
		want, err := content(ref)
		if err != nil {
			return nil, err
		}
		return extended(want, live, ch.Migrations[0])
	}, nil
}

// rewriteStored rewrites the custom resources of a change, and sets the resourceVersion that its CRD has after that.
// Failures of a conversion webhook are retried while its certificate can have changed.
func (c *Cluster) rewriteStored(ctx context.Context, ch *plan.Change) error {
	for _, m := range ch.Migrations {
		began := time.Now()
		for wait := time.Second; ; wait = min(2*wait, limiter.MaxPause) {
			done, after, err := c.migrateStorage(ctx, m.CRD, m.DropFields)
			if conversionFailed(err) && time.Since(began) < conversionLasts && pause.For(ctx, wait) == nil {
				continue
			}
			if err != nil {
				return err
			}
			if done.Storage != m.Storage {
				return ErrMoved.New(nil, "another client has changed the storage version of %s to %s", m.CRD, done.Storage)
			}
			if ch.Ref.Kind == plan.DefinitionKind {
				ch.ResourceVersion = after.Metadata.ResourceVersion
			}
			break
		}
	}
	return nil
}

// conversionFailed reports whether a conversion webhook failed.
func conversionFailed(err error) bool {
	return isInternal(err) && strings.Contains(err.Error(), "conversion webhook")
}

// crdObject is a CRD whose versions can be replaced.
type crdObject struct {
	object, spec map[string]json.RawMessage
	versions     []crdVersion
}

// crdVersion is a version of a CRD with its JSON.
type crdVersion struct {
	name    string
	storage bool
	raw     map[string]json.RawMessage
}

func versionsOf(crd []byte) (out crdObject, err error) {
	if err := json.Unmarshal(crd, &out.object); err != nil {
		return out, err
	}
	if err := json.Unmarshal(out.object["spec"], &out.spec); err != nil {
		return out, err
	}
	var all []map[string]json.RawMessage
	if err := json.Unmarshal(out.spec["versions"], &all); err != nil {
		return out, err
	}
	for _, raw := range all {
		v := crdVersion{raw: raw}
		if err := json.Unmarshal(raw["name"], &v.name); err != nil {
			return out, err
		}
		_ = json.Unmarshal(raw["storage"], &v.storage) // The API server would not have stored another value.
		out.versions = append(out.versions, v)
	}
	return out, nil
}

// with returns the CRD with other versions, of which one is the storage version.
func (o crdObject) with(versions []crdVersion, storage string) ([]byte, error) {
	all := make([]map[string]json.RawMessage, len(versions))
	for i, v := range versions {
		all[i] = maps.Clone(v.raw)
		all[i]["storage"] = json.RawMessage(fmt.Sprint(v.name == storage))
	}
	list, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	object, spec := maps.Clone(o.object), maps.Clone(o.spec)
	spec["versions"] = list
	if object["spec"], err = json.Marshal(spec); err != nil {
		return nil, err
	}
	return json.Marshal(object)
}
