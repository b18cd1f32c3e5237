package tocore

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// contended is the pause between the attempts to write an object that other clients change, such as a controller that
// reconciles it. The attempts take at most about five seconds.
var contended = wait.Backoff{Steps: 10, Duration: 10 * time.Millisecond, Factor: 2, Jitter: 0.5}

// target is an object and the metadata that it gets, computed from the live object.
type target struct {
	object *metav1.PartialObjectMetadata
	want   func(*metav1.PartialObjectMetadata) metadata
}

// pending reports whether the object has to be written.
func (t target) pending() (bool, error) {
	want := t.want(t.object)
	patch, err := want.patch(t.object)
	if err != nil || patch != nil {
		return true, err
	}
	patch, err = want.fieldsPatch(t.object)
	return patch != nil, err
}

// targets returns all objects of packages and of runtimes, with the metadata that they get, in the order of the writes.
// The packages come last.
func (m *mover) targets(ctx context.Context, s *snapshot) ([]target, error) {
	var out []target
	for _, part := range []func(
		context.Context, *snapshot,
	) ([]target, error){m.packageObjects, m.compositionRevisions, m.runtimeObjects, m.roles, m.packages} {
		some, err := part(ctx, s)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// packageObjects returns the objects that revisions list in their status.
func (m *mover) packageObjects(ctx context.Context, s *snapshot) ([]target, error) {
	kinds := map[schema.GroupVersionKind][]family{}
	for _, f := range s.families {
		for _, rev := range f.Revisions {
			for _, ref := range revision.Objects(rev) {
				gvk := ref.GroupVersionKind()
				if !slices.ContainsFunc(kinds[gvk], func(known family) bool { return known.GetUID() == f.GetUID() }) {
					kinds[gvk] = append(kinds[gvk], f)
				}
			}
		}
	}
	var out []target
	for gvk, families := range kinds {
		live, err := m.list(ctx, gvk, "")
		if err != nil {
			return nil, err
		}
		for _, f := range families {
			refs := map[string]plan.Ref{}
			for _, rev := range f.Revisions {
				for _, ref := range revision.Objects(rev) {
					if ref.GroupVersionKind() == gvk {
						refs[ref.Name] = ref
					}
				}
			}
			for i := range live {
				ref, ours := refs[live[i].Name]
				if !ours {
					continue
				}
				out = append(out, target{object: &live[i], want: func(o *metav1.PartialObjectMetadata) metadata {
					want := metadata{owners: f.ownersOfObject(ref, o.OwnerReferences)}
					// Core clears the field managers of a CRD before it applies it for the first time.
					if isAppliedBy(o, definitionFieldManager) {
						want.applier = definitionFieldManager
					}
					return want
				}})
			}
		}
	}
	return out, nil
}

// runtimeObjects returns the objects of runtimes. Objects without a package as an owner only lose the traces of the
// manager: the Secret of the CA, and ReplicaSets, which have the annotations of their Deployment.
func (m *mover) runtimeObjects(ctx context.Context, s *snapshot) ([]target, error) {
	var out []target
	for _, gvk := range []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		corev1.SchemeGroupVersion.WithKind("Service"), corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
		corev1.SchemeGroupVersion.WithKind("Secret"),
	} {
		live, err := m.list(ctx, gvk, m.Namespace)
		if err != nil {
			return nil, err
		}
		for i := range live {
			o := &live[i]
			f := slices.IndexFunc(s.families, func(f family) bool { return slices.ContainsFunc(o.OwnerReferences, f.includes) })
			if f < 0 {
				out = append(out, target{object: o, want: withoutTraces})
				continue
			}
			out = append(out, target{object: o, want: func(o *metav1.PartialObjectMetadata) metadata {
				return metadata{owners: s.families[f].ownersOfRuntime(o.OwnerReferences), applier: runtimeFieldManager}
			}})
		}
	}
	return out, nil
}

func withoutTraces(*metav1.PartialObjectMetadata) metadata { return metadata{} }

// roles returns the roles and bindings, which have the names and owners of core.
func (m *mover) roles(ctx context.Context, _ *snapshot) ([]target, error) {
	var out []target
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"} {
		some, err := m.withTraces(ctx, rbacv1.SchemeGroupVersion.WithKind(kind))
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// compositionRevisions returns the revisions of Compositions, to which core copies the annotations of a Composition.
// They come after the Compositions, so that core creates no further ones with the annotations.
func (m *mover) compositionRevisions(ctx context.Context, _ *snapshot) ([]target, error) {
	return m.withTraces(ctx, schema.GroupVersionKind{
		Group: "apiextensions.crossplane.io", Version: "v1", Kind: "CompositionRevision",
	})
}

// packages returns the revisions and the packages.
func (m *mover) packages(ctx context.Context, _ *snapshot) ([]target, error) {
	var kinds []string
	for _, kind := range v1.PackageKinds() {
		kinds = append(kinds, v1.RevisionKind(kind))
	}
	var out []target
	for _, kind := range append(kinds, v1.PackageKinds()...) {
		some, err := m.withTraces(ctx, v1.GroupVersion.WithKind(kind))
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	return out, nil
}

// withTraces returns the objects of a kind that only lose the traces of the manager.
func (m *mover) withTraces(ctx context.Context, gvk schema.GroupVersionKind) ([]target, error) {
	live, err := m.list(ctx, gvk, "")
	if err != nil {
		return nil, err
	}
	var out []target
	for i := range live {
		out = append(out, target{object: &live[i], want: withoutTraces})
	}
	return out, nil
}

// list lists the metadata of the objects of a kind. A kind that the cluster does not serve has none.
func (m *mover) list(
	ctx context.Context, gvk schema.GroupVersionKind, namespace string,
) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := m.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("list objects of the kind %s: %w", gvk.Kind, err)
	}
	for i := range list.Items {
		list.Items[i].SetGroupVersionKind(gvk)
	}
	return list.Items, nil
}

// pending describes the objects that have to be given back, by kind.
func (m *mover) pending(ctx context.Context, s *snapshot) ([]string, error) {
	targets, err := m.targets(ctx, s)
	if err != nil {
		return nil, err
	}
	return countByKind(targets)
}

func countByKind(targets []target) ([]string, error) {
	var kinds []string
	count := map[string]int{}
	for _, t := range targets {
		pending, err := t.pending()
		if err != nil {
			return nil, err
		}
		if !pending {
			continue
		}
		if count[t.object.Kind] == 0 {
			kinds = append(kinds, t.object.Kind)
		}
		count[t.object.Kind]++
	}
	slices.Sort(kinds)
	var out []string
	for _, kind := range kinds {
		out = append(out, wording.Count(count[kind], kind))
	}
	return out, nil
}

// giveBack writes the metadata of all objects, and makes the health of the packages unknown until core reports it.
func (m *mover) giveBack(ctx context.Context, report migration.Report) error {
	s, err := m.read(ctx)
	if err != nil {
		return err
	}
	for _, f := range s.families {
		if err := m.resetHealth(ctx, f); err != nil {
			return err
		}
	}
	targets, err := m.targets(ctx, s)
	if err != nil {
		return err
	}
	return m.writeAll(ctx, report, targets)
}

func (m *mover) writeAll(ctx context.Context, report migration.Report, targets []target) error {
	for i, t := range targets {
		if i%100 == 0 {
			report("%d of %d objects", i, len(targets))
		}
		if err := m.write(ctx, t); err != nil {
			return fmt.Errorf("write the metadata of %s %s: %w", t.object.Kind, t.object.Name, err)
		}
	}
	return nil
}

// write writes the metadata of one object, with one patch, or two if core applies the object. An object that was
// deleted meanwhile needs none.
func (m *mover) write(ctx context.Context, t target) error {
	stale := false
	return client.IgnoreNotFound(retry.RetryOnConflict(contended, func() error {
		if stale {
			if err := m.Client.Get(ctx, client.ObjectKeyFromObject(t.object), t.object); err != nil {
				return err
			}
		}
		stale = true
		return m.tryWrite(ctx, t)
	}))
}

func (m *mover) tryWrite(ctx context.Context, t target) error {
	want := t.want(t.object)
	manager := plan.CrossplaneFieldManager
	if want.applier != "" {
		// The changes join the fields that are handed over below.
		manager = plan.FieldManager
	}
	patch, err := want.patch(t.object)
	if err != nil {
		return err
	}
	if patch != nil {
		if err := m.patch(ctx, t.object, patch, manager); err != nil {
			return err
		}
	}
	if patch, err = want.fieldsPatch(t.object); err != nil || patch == nil {
		return err
	}
	return m.patch(ctx, t.object, patch, want.applier)
}

func (m *mover) patch(ctx context.Context, o *metav1.PartialObjectMetadata, patch []byte, manager string) error {
	return m.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(manager))
}
