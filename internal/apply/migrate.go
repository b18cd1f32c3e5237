package apply

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/xpkg-dev/xpkg/internal/apply/limiter"
	"github.com/xpkg-dev/xpkg/internal/judgement"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/crddiff"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// rewritesAtOnce is the maximum number of custom resources of a CRD that are rewritten concurrently.
const rewritesAtOnce = 8

// migration is what was done with the custom resources of one CRD.
type migration struct {
	// Storage is the version in which objects are stored, and Former the other versions of status.storedVersions.
	Storage string
	Former  []string
	// Resources is the number of custom resources, and Rewritten the number of rewritten ones. Resources that were changed
	// or deleted meanwhile need no rewrite.
	Resources, Rewritten int
}

// Reporting returns a cluster that calls a function with the number of custom resources of a CRD that a migration has
// rewritten, or found to be written. It calls it for each of them, for several CRDs at once.
func (c *Cluster) Reporting(rewritten func(crd string, n int)) *Cluster {
	d := *c
	d.rewritten = rewritten
	return &d
}

// CRDs returns the names of the CRDs with a matching owner, in alphabetical order.
func (c *Cluster) CRDs(ctx context.Context, matches func(metav1.OwnerReference) bool) ([]string, error) {
	owned, err := c.Owned(ctx, plan.DefinitionRef(""))
	if err != nil {
		return nil, err
	}
	names := []string{}
	for _, ref := range owned.By(matches) {
		names = append(names, ref.Name)
	}
	return names, nil
}

// migrateStorage rewrites the custom resources of a CRD in its storage version, and removes the other versions from
// status.storedVersions. It also returns the metadata of the CRD after that. An interrupted migration is repeated: the
// API server does not write an object that is stored in the storage version. Without dropFields, it keeps custom
// resources that would lose fields as they are, and fails.
func (c *Cluster) migrateStorage(
	ctx context.Context, crd string, dropFields bool,
) (m migration, after partial, err error) {
	ref := plan.DefinitionRef(crd)
	raw, exists, err := c.object(ctx, ref)
	switch {
	case err != nil:
		return m, after, err
	case !exists:
		return m, after, ErrMoved.New(nil, "%s %s was deleted", ref.Kind, crd)
	}
	live, err := decodeDefinition(ref, raw)
	if err != nil {
		return m, after, err
	}
	if err := json.Unmarshal(raw, &after); err != nil {
		return m, after, err
	}
	if err := unlessMigrating(crd, raw); err != nil {
		return m, after, err
	}
	m.Storage, m.Former = live.Storage,
		slices.DeleteFunc(slices.Clone(live.Stored), func(v string) bool { return v == live.Storage })
	if len(m.Former) == 0 {
		return m, after, nil
	}
	if len(live.Served) == 0 {
		return m, after, ErrMoved.New(nil, "no version of %s %s is served", ref.Kind, crd)
	}
	version := live.Served[0]
	if slices.Contains(live.Served, live.Storage) {
		version = live.Storage
	}
	var formers []formerSchema
	if !dropFields {
		if formers, err = formerSchemas(raw, live, m.Former); err != nil {
			return m, after, err
		}
	}
	if err := c.rewriteAll(ctx, live, version, formers, &m); err != nil {
		return m, after, err
	}
	after, err = c.finishMigration(ctx, ref, after, live.Storage)
	if err != nil {
		return m, after, classify(err, "write status.storedVersions of %s %s", ref.Kind, crd)
	}
	return m, after, nil
}

// unlessMigrating returns an error if the API server rewrites the custom resources of a CRD. A change of the CRD would
// make it begin again.
func unlessMigrating(name string, raw []byte) error {
	var d definition
	if err := json.Unmarshal(raw, &d); err != nil {
		return err
	}
	if !d.has(apiextensionsv1.StorageMigrating) {
		return nil
	}
	return ErrMoved.New(nil, "a StorageVersionMigration rewrites the custom resources of %s", name).WithDo(
		"Wait for it with `kubectl wait crd %s --for condition=%s=False --timeout 10m`, and run the command again; the manager continues by itself.",
		name, apiextensionsv1.StorageMigrating,
	)
}

// rewriteAll rewrites all custom resources except for those that would lose fields of former versions, and returns the
// first error after all attempts. It stops if the API server does not respond.
func (c *Cluster) rewriteAll(
	ctx context.Context, d plan.Definition, version string, formers []formerSchema, m *migration,
) error {
	var mu sync.Mutex
	var handled, failed, losing int
	var first error
	var firstLoss string
	var unreachable atomic.Bool
	group := errgroup.Group{}
	group.SetLimit(rewritesAtOnce)
	folder := "/apis/" + d.Group + "/" + version
	err := each(ctx, c, folder+"/"+d.Plural, func(live metav1.PartialObjectMetadata) {
		m.Resources++
		p := partialOf(live)
		group.Go(func() error {
			var rewritten bool
			var loss string
			err := errNoAnswer
			if !unreachable.Load() {
				if loss, err = c.loss(ctx, d, p, formers); loss == "" && err == nil {
					rewritten, err = c.rewrite(ctx, folder, d.Plural, p, renamedFields(live.ManagedFields, d, m.Former), false)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			handled++
			if c.rewritten != nil {
				c.rewritten(d.Plural+"."+d.Group, handled)
			}
			if loss != "" {
				losing++
				firstLoss = cmp.Or(firstLoss, loss)
			}
			if rewritten {
				m.Rewritten++
			}
			if err != nil {
				failed++
				first = cmp.Or(first, err)
				unreachable.Store(unreachable.Load() || IsUnreachable(err))
			}
			return nil
		})
	})
	if err := errors.Join(err, group.Wait()); err != nil {
		return classify(err, "list the custom resources of %s.%s", d.Plural, d.Group)
	}
	if failed > 0 {
		return classify(first, "rewrite %d of %d custom resources of %s.%s", failed, m.Resources, d.Plural, d.Group)
	}
	if losing > 0 {
		return ErrMoved.New(
			nil, "%s does not describe fields of %d of %d custom resources of %s.%s: %s", d.Storage, losing, m.Resources,
			d.Plural, d.Group, firstLoss,
		)
	}
	return nil
}

// partialOf returns the identity of an object.
func partialOf(o metav1.PartialObjectMetadata) partial {
	var p partial
	p.Metadata.Name, p.Metadata.Namespace, p.Metadata.UID, p.Metadata.ResourceVersion = o.Name, o.Namespace, o.UID,
		o.ResourceVersion
	return p
}

// renamedFields returns the managed fields of an object with the storage version in place of former ones, or nil if
// none names a former one. Without a version that managed fields name, the API server refuses every server-side apply
// of the object (kubernetes/kubernetes#111937).
func renamedFields(
	entries []metav1.ManagedFieldsEntry, d plan.Definition, former []string,
) []metav1.ManagedFieldsEntry {
	var out []metav1.ManagedFieldsEntry
	for i, e := range entries {
		if group, version, _ := strings.Cut(e.APIVersion, "/"); group != d.Group || !slices.Contains(former, version) {
			continue
		}
		if out == nil {
			out = slices.Clone(entries)
		}
		out[i].APIVersion = d.Group + "/" + d.Storage
	}
	return out
}

// rewrite makes the API server store an object in the storage version, with a patch that changes at most its managed
// fields. An object that another client has written or created meanwhile is already stored in that version. If the API
// server rejects the object or admission denies it, it is written through its status, which has no part in either.
func (c *Cluster) rewrite(
	ctx context.Context, folder, plural string, p partial, fields []metav1.ManagedFieldsEntry, dryRun bool,
) (bool, error) {
	metadata := map[string]any{"uid": p.Metadata.UID, "resourceVersion": p.Metadata.ResourceVersion}
	if fields != nil {
		metadata["managedFields"] = fields
	}
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return false, err
	}
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	patch := func(subresource ...string) error {
		_, _, err := c.call(ctx, limiter.WriteMetadata, func() (*rest.Request, int, error) {
			req := c.rest.Patch(types.MergePatchType).AbsPath(slices.Concat(p.pathIn(folder, plural), subresource)...).
				Param("fieldManager", plan.FieldManager)
			if dryRun {
				req = req.Param("dryRun", metav1.DryRunAll)
			}
			return req.SetHeader("Accept", metadataObject).Body(body), len(body), nil
		})
		return err
	}
	err = patch()
	if deniedByAdmission(err) || apierrors.IsInvalid(err) && !anotherUID(err) {
		if throughStatus := patch("status"); !apierrors.IsNotFound(throughStatus) {
			err = throughStatus
		}
	}
	switch {
	case err == nil:
		return true, nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err) && !notServed(err), anotherUID(err):
		return false, nil
	}
	return false, fmt.Errorf("%s: %w", p.Metadata.Name, err)
}

// finishTries is the number of attempts to write the status of a CRD that other clients change too.
const finishTries = 5

// finishMigration sets status.storedVersions to the storage version, unless another client has changed the spec of the
// CRD or replaced it meanwhile: objects can be stored in a former version again, also if the storage version is the
// same now. It returns the metadata of the CRD after that.
func (c *Cluster) finishMigration(ctx context.Context, ref plan.Ref, before partial, storage string) (partial, error) {
	folder, err := collection(ref)
	if err != nil {
		return partial{}, err
	}
	for try := 1; ; try++ {
		raw, err := c.get(ctx, runtime.ContentTypeJSON, nil, folder, ref.Name)
		if err != nil {
			return partial{}, err
		}
		var m partial
		if err := json.Unmarshal(raw, &m); err != nil {
			return partial{}, err
		}
		if m.Metadata.UID != before.Metadata.UID || m.Metadata.Generation != before.Metadata.Generation {
			return partial{}, ErrMoved.New(
				nil, "another client has changed %s while its custom resources were rewritten", ref.Name,
			)
		}
		after, err := c.setStoredVersions(ctx, folder, ref.Name, m.Metadata.UID, m.Metadata.ResourceVersion, storage)
		if !apierrors.IsConflict(err) || try == finishTries {
			return after, err
		}
	}
}

// setStoredVersions sets status.storedVersions of a CRD, and returns its metadata.
func (c *Cluster) setStoredVersions(
	ctx context.Context, folder, name string, uid types.UID, resourceVersion, version string,
) (m partial, err error) {
	metadata := map[string]any{"uid": uid, "resourceVersion": resourceVersion}
	patch, err := json.Marshal(map[string]any{"metadata": metadata, "status": map[string]any{"storedVersions": []string{
		version,
	}}})
	if err != nil {
		return m, err
	}
	raw, _, err := c.call(ctx, limiter.WriteObject, func() (*rest.Request, int, error) {
		req := c.rest.Patch(types.MergePatchType).AbsPath(folder, name, "status").Param("fieldManager", plan.FieldManager)
		return req.SetHeader("Accept", metadataObject).Body(patch), len(patch), nil
	})
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(raw, &m)
}

// each calls a function with the metadata of all objects of a collection, page by page. A list whose continue
// token has expired is restarted, so the function can be called twice for an object.
func each[T any](ctx context.Context, c *Cluster, path string, do func(T)) error {
	for next, tries := "", 1; ; {
		params := map[string]string{"limit": pageSize}
		if next != "" {
			params["continue"] = next
		}
		raw, err := c.get(ctx, metadataList, params, path)
		if apierrors.IsResourceExpired(err) && tries < listTries {
			next = ""
			tries++
			continue
		}
		if err != nil {
			return err
		}
		var page struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []T `json:"items"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return err
		}
		for _, item := range page.Items {
			do(item)
		}
		if next = page.Metadata.Continue; next == "" {
			return nil
		}
	}
}

// maxFieldsInText limits the dropped fields in an error.
const maxFieldsInText = 3

// formerSchema is a former storage version with fields that the storage version does not describe.
type formerSchema struct {
	version string
	// fields are the paths of the fields.
	fields []string
	// readable reports whether objects can be read in this version and in the storage version.
	readable bool
	// lost returns the paths of the values that are only in the first of two versions of an object.
	lost func(before, after map[string]any) []string
}

// formerSchemas returns the former storage versions of a CRD with fields that its storage version does not describe.
func formerSchemas(raw []byte, d plan.Definition, former []string) ([]formerSchema, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := json.Unmarshal(raw, crd); err != nil {
		return nil, fmt.Errorf("decode the CustomResourceDefinition: %w", err)
	}
	var out []formerSchema
	for _, version := range former {
		var fields []string
		observes := judgement.Observes(crd, version)
		for _, change := range crddiff.Dropped(crd, version, d.Storage) {
			if !observes || change.Path != ".status" && !strings.HasPrefix(change.Path, ".status.") {
				fields = append(fields, change.Path)
			}
		}
		if len(fields) == 0 {
			continue
		}
		lost, err := judgement.Lost(crd, version)
		if err != nil {
			return nil, fmt.Errorf("read the version %s of the CustomResourceDefinition: %w", version, err)
		}
		out = append(out, formerSchema{
			version, fields, slices.Contains(d.Served, version) && slices.Contains(d.Served, d.Storage), lost,
		})
	}
	return out, nil
}

// loss describes the fields that an object loses when it is stored in the storage version; it is empty if there are
// none.
func (c *Cluster) loss(ctx context.Context, d plan.Definition, p partial, formers []formerSchema) (string, error) {
	for _, former := range formers {
		if !former.readable {
			return fmt.Sprintf("%s can have %s of %s, and the API server does not serve both %s and %s to read them",
				p.name(), wording.Few(former.fields, maxFieldsInText, ", "), former.version, former.version, d.Storage), nil
		}
	}
	lost, err := c.lostBy(ctx, d, p, formers)
	if len(lost) == 0 {
		return "", err
	}
	return p.name() + " has " + wording.Few(lost, maxFieldsInText, ", "), nil
}

// lostBy returns the paths of the values that an object loses when it is stored in the storage version, in order. An
// object that another client has changed or deleted since it was listed loses none by a rewrite.
func (c *Cluster) lostBy(
	ctx context.Context, d plan.Definition, p partial, formers []formerSchema,
) (dropped []string, err error) {
	for _, former := range formers {
		before, err := c.contentIn(ctx, d, former.version, p)
		if before == nil || err != nil {
			return nil, err
		}
		after, err := c.contentIn(ctx, d, d.Storage, p)
		if after == nil || err != nil {
			return nil, err
		}
		dropped = append(dropped, former.lost(before, after)...)
	}
	slices.Sort(dropped)
	return slices.Compact(dropped), nil
}

// contentIn returns the content of an object in an API version, or nil if the object has changed or was deleted.
func (c *Cluster) contentIn(ctx context.Context, d plan.Definition, version string, p partial) (map[string]any, error) {
	raw, err := c.get(ctx, runtime.ContentTypeJSON, nil, p.pathIn("/apis/"+d.Group+"/"+version, d.Plural)...)
	if apierrors.IsNotFound(err) && !notServed(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Metadata.Name, err)
	}
	var now partial
	var content map[string]any
	if err := json.Unmarshal(raw, &now); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	if now.Metadata.UID != p.Metadata.UID || now.Metadata.ResourceVersion != p.Metadata.ResourceVersion {
		return nil, nil
	}
	delete(content, "apiVersion")
	return content, nil
}
