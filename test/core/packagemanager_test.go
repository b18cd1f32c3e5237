package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/runtime/manifests"
	"github.com/xpkg-dev/xpkg/pkg/oci"
	"github.com/xpkg-dev/xpkg/pkg/plan"
)

// The field managers of core.
const (
	coreRuntime     = "pkg.crossplane.io/runtime"
	coreDefinitions = "apiextensions.crossplane.io/managed"
)

// packageManager is a stand-in of the package manager of core 2.4. It names, activates and deactivates revisions,
// establishes objects and runs Deployments by the rules of core, and fails where core does: at an object with another
// controller, and at a server-side apply that would leave two.
type packageManager struct {
	client.Client
	mu       sync.Mutex
	contents map[string]content // by reference
	// seen has the resource versions of revisions that need no further work.
	seen map[types.UID]string
	// runtimes reports that core runs package runtimes.
	runtimes bool
	// errs are the failures of the last round, and failed all that were no conflicts and no denials of the fence.
	errs   []error
	failed []string
}

type content struct {
	digest  oci.Digest
	objects []*unstructured.Unstructured
}

func newPackageManager(c client.Client) *packageManager {
	return &packageManager{Client: c, contents: map[string]content{}, seen: map[types.UID]string{}}
}

// add makes the content of a reference known.
func (m *packageManager) add(reference string, digest oci.Digest, text string) error {
	c := content{digest: digest}
	for _, doc := range strings.Split(text, "---\n")[1:] {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &o.Object); err != nil {
			return err
		}
		c.objects = append(c.objects, o)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.contents[reference] = c
	return nil
}

// failures returns the failures so far.
func (m *packageManager) failures() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.failed)
}

// settled reports whether the last round had no failure.
func (m *packageManager) settled() (string, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprint(errors.Join(m.errs...)), len(m.errs) == 0
}

// reconcile makes one round over all packages and revisions.
func (m *packageManager) reconcile(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.errs = nil
	core := &appsv1.Deployment{}
	if err := m.Get(ctx, types.NamespacedName{Namespace: namespace, Name: crossplane.DeploymentName}, core); err != nil {
		return err
	}
	runtimes := !slices.Contains(core.Spec.Template.Spec.Containers[0].Args, "--package-runtime=External")
	if runtimes != m.runtimes {
		// Other arguments restart core, which then reconciles everything.
		m.runtimes = runtimes
		clear(m.seen)
	}
	for _, kind := range v1.PackageKinds() {
		packages, revisions := v1.NewPackageList(kind), v1.NewPackage(kind).NewRevisionList()
		if err := errors.Join(m.List(ctx, packages), m.List(ctx, revisions)); err != nil {
			return err
		}
		for _, p := range packages.Packages() {
			m.once(p, func() error { return m.reconcilePackage(ctx, p, revisions.Revisions()) })
		}
		for _, rev := range revisions.Revisions() {
			// The garbage collector deletes the revisions of a package that does not exist, and core releases them then.
			if owner := metav1.GetControllerOf(rev); owner != nil && rev.GetDeletionTimestamp() == nil &&
				!slices.ContainsFunc(packages.Packages(), func(p v1.Package) bool { return p.GetUID() == owner.UID }) {
				continue
			}
			m.once(rev, func() error { return m.reconcileRevision(ctx, rev, runtimes) })
		}
	}
	return errors.Join(m.errs...)
}

// once calls a function until it succeeds and has not changed its object. A package is reconciled in every round,
// because its revisions change.
func (m *packageManager) once(o client.Object, reconcile func() error) {
	before := o.GetResourceVersion()
	if _, isRevision := o.(v1.PackageRevision); isRevision && m.seen[o.GetUID()] == before {
		return
	}
	err := reconcile()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && apierrors.IsNotFound(err) &&
		status.Status().Details != nil && status.Status().Details.Name == o.GetName() {
		return // deleted since it was listed
	}
	if err == nil && o.GetResourceVersion() == before {
		m.seen[o.GetUID()] = before
		return
	}
	if err == nil {
		err = fmt.Errorf("%s was written", o.GetName())
	} else if !apierrors.IsConflict(err) && !apierrors.IsForbidden(err) && !errors.Is(err, errWaiting) {
		m.failed = append(m.failed, o.GetName()+": "+err.Error())
	}
	m.errs = append(m.errs, err)
}

// errWaiting is the error of a revision that waits for its runtime.
var errWaiting = errors.New("waiting")

func (m *packageManager) reconcilePackage(ctx context.Context, p v1.Package, all []v1.PackageRevision) error {
	if p.GetDeletionTimestamp() != nil {
		return nil
	}
	c, known := m.contents[p.PackageSpec().Package]
	if !known {
		return fmt.Errorf("cannot fetch %s", p.PackageSpec().Package)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s|%d", c.digest.Hex(), p.GetGeneration()))
	name := oci.FriendlyID(p.GetName(), hex.EncodeToString(sum[:]))
	current, highest := p.NewRevision(), int64(0)
	for _, rev := range all {
		if rev.GetLabels()[v1.LabelPackage] != p.GetName() {
			continue
		}
		highest = max(highest, rev.RevisionSpec().Revision)
		if rev.GetName() == name {
			current = rev.DeepCopyObject().(v1.PackageRevision)
			continue
		}
		if rev.RevisionSpec().DesiredState == v1.RevisionActive {
			if c := metav1.GetControllerOf(rev); c != nil && c.UID != p.GetUID() {
				return fmt.Errorf("revision %s is controlled by %s", rev.GetName(), c.Name)
			}
			rev.RevisionSpec().DesiredState = v1.RevisionInactive
			if err := m.Update(ctx, rev); err != nil {
				return err
			}
		}
	}
	before := current.DeepCopyObject()
	spec := current.RevisionSpec()
	if spec.Revision < highest || highest == 0 {
		spec.Revision = highest + 1
	}
	current.SetName(name)
	labels := current.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1.LabelPackage] = p.GetName()
	current.SetLabels(labels)
	spec.Image, spec.DesiredState = p.PackageSpec().Package, v1.RevisionActive
	if rt := current.RuntimeSpec(); rt != nil {
		rt.PackageRuntimeSpec = *p.RuntimeSpec().DeepCopy()
		rt.TLSServerSecretName = new(v1.TLSServerSecretName(p.GetName()))
		if p.PackageKind() == v1.ProviderKind {
			rt.TLSClientSecretName = new(v1.TLSClientSecretName(p.GetName()))
		}
	}
	owner := plan.Owner{APIVersion: v1.GroupVersion.String(), Kind: p.PackageKind(), Name: p.GetName(), UID: p.GetUID()}
	current.SetOwnerReferences(addOwner(current.GetOwnerReferences(), owner.Reference(true)))
	switch {
	case current.GetUID() == "":
		if err := m.Create(ctx, current); err != nil {
			return err
		}
	case !equality.Semantic.DeepEqual(before, current):
		if err := m.Update(ctx, current); err != nil {
			return err
		}
	}
	next := p.DeepCopyObject().(v1.Package)
	status := next.PackageStatus()
	status.CurrentRevision, status.CurrentIdentifier = name, p.PackageSpec().Package
	next.SetConditions(metav1.Now(), v1.Active(), health(current))
	return m.updateStatus(ctx, p, next)
}

// health returns the health of a package.
func health(rev v1.PackageRevision) v1.Condition {
	if rev.GetCondition(v1.TypeRevisionHealthy).Status != corev1.ConditionTrue {
		return v1.UnknownHealth("the revision is not healthy")
	}
	if rev.RuntimeSpec() != nil && rev.GetCondition(v1.TypeRuntimeHealthy).Status != corev1.ConditionTrue {
		return v1.UnknownHealth("the runtime is not healthy")
	}
	return v1.Healthy()
}

// updateStatus writes the status of an object if it differs.
func (m *packageManager) updateStatus(ctx context.Context, o, next client.Object) error {
	if equality.Semantic.DeepEqual(o, next) {
		return nil
	}
	if err := m.Status().Update(ctx, next); err != nil {
		return err
	}
	o.SetResourceVersion(next.GetResourceVersion())
	return nil
}

func (m *packageManager) reconcileRevision(ctx context.Context, rev v1.PackageRevision, runtimes bool) error {
	if rev.GetDeletionTimestamp() != nil {
		rev.SetFinalizers(slices.DeleteFunc(rev.GetFinalizers(), func(f string) bool { return f == v1.FinalizerRevision }))
		return client.IgnoreNotFound(m.Update(ctx, rev))
	}
	if !slices.Contains(rev.GetFinalizers(), v1.FinalizerRevision) {
		rev.SetFinalizers(append(rev.GetFinalizers(), v1.FinalizerRevision))
		return m.Update(ctx, rev)
	}
	active := rev.RevisionSpec().DesiredState == v1.RevisionActive
	if !active {
		return errors.Join(m.release(ctx, rev), m.deactivate(ctx, rev, runtimes))
	}
	c := m.contents[rev.RevisionSpec().Image]
	next := rev.DeepCopyObject().(v1.PackageRevision)
	if rev.RuntimeSpec() != nil && runtimes {
		if err := m.prepareRuntime(ctx, next, c); err != nil {
			return err
		}
	}
	next.RevisionStatus().ObjectRefs = nil
	for _, o := range c.objects {
		if err := m.establish(ctx, next, o.DeepCopy()); err != nil {
			return err
		}
		next.RevisionStatus().ObjectRefs = append(next.RevisionStatus().ObjectRefs, v1.TypedReference{
			APIVersion: o.GetAPIVersion(), Kind: o.GetKind(), Name: o.GetName(),
		})
	}
	next.SetConditions(metav1.Now(), v1.RevisionHealthy())
	if rev.RuntimeSpec() != nil && runtimes {
		if err := m.runRuntime(ctx, next, c); err != nil {
			return errors.Join(err, m.updateStatus(ctx, rev, next))
		}
		next.SetConditions(metav1.Now(), v1.RuntimeHealthy())
	}
	return m.updateStatus(ctx, rev, next)
}

func ownerOf(rev v1.PackageRevision) plan.Owner {
	return plan.Owner{APIVersion: v1.GroupVersion.String(), Kind: v1.RevisionKind(
		rev.PackageKind(),
	), Name: rev.GetName(), UID: rev.GetUID()}
}

// addOwner adds an owner reference in place of one of the same UID.
func addOwner(refs []metav1.OwnerReference, r metav1.OwnerReference) []metav1.OwnerReference {
	refs = slices.Clone(refs)
	if i := slices.IndexFunc(refs, func(x metav1.OwnerReference) bool { return x.UID == r.UID }); i >= 0 {
		refs[i] = r
		return refs
	}
	return append(refs, r)
}

// release gives up the control of the objects of an inactive revision.
func (m *packageManager) release(ctx context.Context, rev v1.PackageRevision) error {
	for _, ref := range rev.RevisionStatus().ObjectRefs {
		o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": ref.APIVersion, "kind": ref.Kind}}
		if err := m.Get(ctx, types.NamespacedName{Name: ref.Name}, o); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return err
		}
		refs := o.GetOwnerReferences()
		i := slices.IndexFunc(refs, func(r metav1.OwnerReference) bool { return r.UID == rev.GetUID() })
		switch {
		case i < 0:
			refs = append(refs, ownerOf(rev).Reference(false))
		case refs[i].Controller != nil && *refs[i].Controller:
			refs[i].Controller = new(bool)
		default:
			continue
		}
		o.SetOwnerReferences(refs)
		if err := m.Update(ctx, o, client.FieldOwner(plan.CrossplaneFieldManager)); err != nil {
			return err
		}
	}
	return nil
}

// deactivate deletes the Deployment of an inactive revision that controls it.
func (m *packageManager) deactivate(ctx context.Context, rev v1.PackageRevision, runtimes bool) error {
	d := &appsv1.Deployment{}
	if rev.RuntimeSpec() == nil || !runtimes {
		return nil
	}
	err := m.Get(ctx, types.NamespacedName{Namespace: namespace, Name: rev.GetName()}, d)
	if err != nil || !metav1.IsControlledBy(d, rev) {
		return client.IgnoreNotFound(err)
	}
	return m.Delete(ctx, d)
}

// establish makes a revision the controller of an object, and replaces its content. CRDs of Providers are applied, as
// from managed resource definitions.
func (m *packageManager) establish(ctx context.Context, rev v1.PackageRevision, o *unstructured.Unstructured) error {
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(o.GroupVersionKind())
	err := m.Get(ctx, types.NamespacedName{Name: o.GetName()}, live)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	exists := err == nil
	if o.GetKind() == plan.DefinitionKind && rev.PackageKind() == v1.ProviderKind {
		if exists {
			if err := m.upgradeFields(ctx, live); err != nil {
				return err
			}
		}
		o.SetOwnerReferences([]metav1.OwnerReference{ownerOf(rev).Reference(true)})
		return m.apply(ctx, o, coreDefinitions)
	}
	owner := metav1.GetControllerOf(rev)
	owner.Controller = new(bool)
	if !exists {
		o.SetOwnerReferences([]metav1.OwnerReference{ownerOf(rev).Reference(true), *owner})
		return m.Create(ctx, o, client.FieldOwner(plan.CrossplaneFieldManager))
	}
	refs := addOwner(live.GetOwnerReferences(), *owner)
	for _, r := range refs {
		if r.Controller != nil && *r.Controller && r.UID != rev.GetUID() {
			return fmt.Errorf("%s %s is already controlled by %s %s", o.GetKind(), o.GetName(), r.Kind, r.Name)
		}
	}
	o.SetOwnerReferences(addOwner(refs, ownerOf(rev).Reference(true)))
	o.SetResourceVersion(live.GetResourceVersion())
	return m.Update(ctx, o, client.FieldOwner(plan.CrossplaneFieldManager))
}

// upgradeFields clears the field managers of a CRD that core has not applied yet, and removes the one that the API
// server records for fields of unknown origin.
func (m *packageManager) upgradeFields(ctx context.Context, o *unstructured.Unstructured) error {
	applied, unknown := false, -1
	for i, e := range o.GetManagedFields() {
		applied = applied || e.Manager == coreDefinitions
		if e.Manager == "before-first-apply" {
			unknown = i
		}
	}
	version := fmt.Sprintf(`{"op":"replace","path":"/metadata/resourceVersion","value":%q}`, o.GetResourceVersion())
	switch {
	case applied && unknown < 0:
		return nil
	case applied:
		patch := fmt.Appendf(nil, `[{"op":"remove","path":"/metadata/managedFields/%d"},%s]`, unknown, version)
		return m.Patch(ctx, o, client.RawPatch(types.JSONPatchType, patch))
	}
	patch := fmt.Appendf(nil, `[{"op":"replace","path":"/metadata/managedFields","value":[{}]},%s]`, version)
	return m.Patch(ctx, o, client.RawPatch(types.JSONPatchType, patch))
}

// apply applies an object.
func (m *packageManager) apply(ctx context.Context, o client.Object, manager string) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &u.Object); err != nil {
		return err
	}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return m.Client.Apply(
		ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(manager), client.ForceOwnership,
	)
}

// manifestsOf returns the objects of the runtime of a revision as core builds them: the revision is the only owner, and
// the image is named as the package names it.
func manifestsOf(rev v1.PackageRevision, c content) (manifests.Objects, error) {
	pkg := metav1.GetControllerOf(rev)
	in := manifests.Input{
		Owner: plan.Requester{
			Revision: ownerOf(rev),
			Package:  plan.Owner{APIVersion: pkg.APIVersion, Kind: pkg.Kind, Name: pkg.Name, UID: pkg.UID},
		},
		Namespace: namespace, Image: rev.RevisionSpec().Image + "@" + c.digest.String(),
		TLSServerSecret: v1.TLSServerSecretName(pkg.Name), TLSClientSecret: v1.TLSClientSecretName(pkg.Name),
	}
	out, err := manifests.Build(in)
	if err != nil {
		return out, err
	}
	asCore(&out.Deployment.Spec.Template.Spec.Containers[0], rev.RevisionSpec().Image)
	for _, o := range []client.Object{out.ServiceAccount, out.Service, out.Deployment} {
		o.SetOwnerReferences([]metav1.OwnerReference{ownerOf(rev).Reference(true)})
	}
	return out, nil
}

// prepareRuntime applies the Service, and the Secrets of the certificates: those of a Function by server-side apply,
// those of a Provider by a merge patch.
func (m *packageManager) prepareRuntime(ctx context.Context, rev v1.PackageRevision, c content) error {
	objects, err := manifestsOf(rev, c)
	if err != nil {
		return err
	}
	if err := m.apply(ctx, objects.Service, coreRuntime); err != nil {
		return err
	}
	pkg := rev.GetLabels()[v1.LabelPackage]
	names := []string{v1.TLSServerSecretName(pkg)}
	if rev.PackageKind() == v1.ProviderKind {
		names = append(names, v1.TLSClientSecretName(pkg))
	}
	for _, name := range names {
		secret := &corev1.Secret{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, OwnerReferences: []metav1.OwnerReference{ownerOf(rev).Reference(true)},
		}}
		if rev.PackageKind() == v1.FunctionKind {
			if err := m.apply(ctx, secret, coreRuntime); err != nil {
				return err
			}
			continue
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": secret.OwnerReferences}})
		if err != nil {
			return err
		}
		err = m.Patch(
			ctx, secret, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(plan.CrossplaneFieldManager),
		)
		if apierrors.IsNotFound(err) {
			err = m.Create(ctx, secret)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// runRuntime applies the ServiceAccount and the Deployment, and fails until the Deployment is available.
func (m *packageManager) runRuntime(ctx context.Context, rev v1.PackageRevision, c content) error {
	objects, err := manifestsOf(rev, c)
	if err != nil {
		return err
	}
	for _, o := range []client.Object{objects.ServiceAccount, objects.Deployment} {
		if err := m.apply(ctx, o, coreRuntime); err != nil {
			return err
		}
	}
	d := &appsv1.Deployment{}
	if err := m.Get(ctx, client.ObjectKeyFromObject(objects.Deployment), d); err != nil {
		return err
	}
	if d.Status.ObservedGeneration < d.Generation || d.Status.AvailableReplicas == 0 ||
		d.Status.Replicas > d.Status.UpdatedReplicas {
		return errWaiting
	}
	return nil
}
