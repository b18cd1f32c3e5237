package firstgeneration

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	packagesv1alpha1 "github.com/xpkg-dev/xpkg/apis/packages/v1alpha1"
	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/controller/packageapi"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/rollout"
	"github.com/xpkg-dev/xpkg/internal/state"
	"github.com/xpkg-dev/xpkg/internal/wording"
)

// managersStep stops the former package manager.
func (m *Migration) managersStep(s *snapshot) *migration.Step {
	return m.stopStep("Stop the former package manager", s.managers)
}

// controllersStep stops the controllers that the former package manager started, before the manager starts new ones.
func (m *Migration) controllersStep(s *snapshot) *migration.Step {
	var all []appsv1.Deployment
	for _, in := range s.withControllers() {
		all = append(all, in.deployments...)
	}
	return m.stopStep("Stop the controllers of packages", all)
}

// stopStep scales Deployments to zero, and waits until their pods are gone.
func (m *Migration) stopStep(title string, all []appsv1.Deployment) *migration.Step {
	step := &migration.Step{Title: title, Done: true}
	for _, d := range all {
		if !isStopped(&d) {
			step.Done = false
			step.Details = append(step.Details, fmt.Sprintf("Deployment %s/%s gets no replicas", d.Namespace, d.Name))
		}
	}
	step.Run = func(ctx context.Context, report migration.Report) error {
		for _, d := range all {
			if err := m.stop(ctx, &d, report); err != nil {
				return err
			}
		}
		return nil
	}
	return step
}

func isStopped(d *appsv1.Deployment) bool {
	return ptr.Deref(d.Spec.Replicas, 1) == 0 && d.Status.ObservedGeneration >= d.Generation && d.Status.Replicas == 0
}

// stop scales a Deployment to zero, and waits until it has no pods. Another Deployment that has its name meanwhile goes
// on.
func (m *Migration) stop(ctx context.Context, planned *appsv1.Deployment, report migration.Report) error {
	key := client.ObjectKeyFromObject(planned)
	var d *appsv1.Deployment
	read := func(ctx context.Context) (exists bool, err error) {
		d = &appsv1.Deployment{}
		err = m.Client.Get(ctx, key, d)
		return err == nil && d.UID == planned.UID, client.IgnoreNotFound(err)
	}
	if exists, err := read(ctx); err != nil || !exists {
		return err
	}
	if ptr.Deref(d.Spec.Replicas, 1) != 0 {
		before := d.DeepCopy()
		d.Spec.Replicas = new(int32(0))
		if err := m.Client.Patch(ctx, d, client.MergeFrom(before), fieldManager); err != nil {
			return fmt.Errorf("scale Deployment %s: %w", key, err)
		}
	}
	return migration.Wait(ctx, m.poll(), report, func(ctx context.Context) (string, error) {
		exists, err := read(ctx)
		if err == nil && (!exists || isStopped(d)) {
			return "", nil
		}
		return fmt.Sprintf("Deployment %s has pods", key), err
	})
}

// apiStep makes the manager the owner of the CRDs of the package API.
func (m *Migration) apiStep(s *snapshot, manifests []bootstrap.Object) *migration.Step {
	return &migration.Step{
		Title: "Install the CRDs of the package API", Done: s.converted,
		Details: []string{"the CRDs of packages.crossplane.io get the schemas of the manager; no object of them is lost"},
		Run: func(ctx context.Context, _ migration.Report) error {
			if err := m.refuseManifests(ctx, manifests); err != nil {
				return err
			}
			_, err := packageapi.Install(ctx, m.Cluster, packageapi.Options{TakeOver: true, FirstGeneration: true})
			return err
		},
	}
}

// installsStep prepares the install objects and the records for the manager: those of stacks.crossplane.io are created
// again in packages.crossplane.io, packages are replaced, and the finalizers of the former package manager are removed.
func (m *Migration) installsStep(s *snapshot) *migration.Step {
	step := &migration.Step{Title: "Prepare the install objects", Done: true}
	for _, in := range s.installs {
		switch {
		case in.successor != nil && in.successor.spec.Package == in.spec.Package && !in.needsPreparation():
			continue
		case in.isEarlier():
			step.Details = append(step.Details, fmt.Sprintf("%s becomes a %s", in.describe(), in.target()))
		case in.isReplaced():
			step.Details = append(step.Details, fmt.Sprintf("%s gets the package %s", in.describe(), in.reference))
		case in.needsPreparation():
			step.Details = append(step.Details, in.describe()+
				" loses the finalizers of the former package manager, and controls its record")
		default:
			continue
		}
		step.Done = false
	}
	for _, p := range s.packages {
		if len(formerFinalizers(p.object)) > 0 {
			step.Details = append(step.Details, p.describe()+" loses the finalizers of the former package manager")
			step.Done = false
		}
	}
	step.Run = func(ctx context.Context, _ migration.Report) error {
		for _, in := range s.installs {
			if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return m.prepare(ctx, in) }); err != nil {
				return err
			}
		}
		for _, p := range s.packages {
			if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return m.preparePackage(ctx, p) }); err != nil {
				return err
			}
		}
		return nil
	}
	return step
}

// definitionsStep hands the CRDs to Providers, which are paused until the manager runs: one patch of the metadata of
// each CRD.
func (m *Migration) definitionsStep(s *snapshot) *migration.Step {
	step := &migration.Step{Title: "Hand the CRDs to Providers", Done: true}
	for _, in := range s.installs {
		n := 0
		for _, crd := range in.crds {
			if !controls(crd.OwnerReferences, in.provider) {
				n++
			}
		}
		if n > 0 || s.providers[in.provider] == nil {
			step.Done = false
			step.Details = append(step.Details, fmt.Sprintf(
				"Provider %s with %s gets %s: one patch of the metadata of each, and no change of a custom resource", in.provider,
				in.reference, wording.Count(n, "CRD"),
			))
		}
	}
	step.Run = func(ctx context.Context, _ migration.Report) error {
		for _, in := range s.installs {
			if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return m.handOver(ctx, in) }); err != nil {
				return err
			}
		}
		return nil
	}
	return step
}

// controls reports whether a Provider is the controller in owner references.
func controls(refs []metav1.OwnerReference, provider string) bool {
	return slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool {
		return r.Controller != nil && *r.Controller && r.Kind == v1.ProviderKind &&
			strings.HasPrefix(r.APIVersion, v1.Group+"/") && r.Name == provider
	})
}

// handOver creates the Provider of an install object, and makes it the controller of the CRDs.
func (m *Migration) handOver(ctx context.Context, in *install) error {
	p, err := m.ensureProvider(ctx, in)
	if err != nil {
		return err
	}
	owner := metav1.OwnerReference{
		APIVersion: v1.GroupVersion.String(), Kind: v1.ProviderKind, Name: p.Name, UID: p.UID, Controller: new(true),
		BlockOwnerDeletion: new(true),
	}
	for _, crd := range in.crds {
		current := &metav1.PartialObjectMetadata{}
		current.SetGroupVersionKind(crdKind)
		if err := m.Client.Get(ctx, client.ObjectKey{Name: crd.Name}, current); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return fmt.Errorf("read CRD %s: %w", crd.Name, err)
		}
		if controls(current.OwnerReferences, p.Name) {
			continue
		}
		if err := refuse(in.crdFinding(current)); err != nil {
			return err
		}
		before := current.DeepCopy()
		current.OwnerReferences = append(slices.DeleteFunc(current.OwnerReferences, isFirstGeneration), owner)
		removeFormerFinalizersOfCRD(current)
		if err := m.Client.Patch(
			ctx, current, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), fieldManager,
		); err != nil {
			return fmt.Errorf("change the owners of CRD %s: %w", crd.Name, err)
		}
	}
	return nil
}

// removeFormerFinalizersOfCRD removes the finalizers with which a former package manager kept a CRD. The finalizer of
// the API server stays.
func removeFormerFinalizersOfCRD(crd *metav1.PartialObjectMetadata) {
	crd.Finalizers = slices.DeleteFunc(crd.Finalizers, func(f string) bool {
		return strings.Contains(f, packagesv1alpha1.Group) || strings.Contains(f, packagesv1alpha1.EarlierGroup)
	})
}

// ensureProvider returns the Provider of an install object. It creates a paused one, unless a manager that runs already
// creates its own.
func (m *Migration) ensureProvider(ctx context.Context, in *install) (*v1.Provider, error) {
	p, err := m.provider(ctx, in.provider)
	if err != nil || p != nil {
		return p, cmp.Or(err, refuse(in.providerFinding(p)))
	}
	p = &v1.Provider{ObjectMeta: metav1.ObjectMeta{Name: in.provider, Annotations: map[string]string{
		v1.AnnotationPaused: "true", annotationMoving: "true",
	}}}
	p.Spec.Package = in.reference.String()
	if in.isCluster() {
		p.Annotations[state.AnnotationInstalledBy] = in.installedBy()
	} else {
		p.Annotations[revision.AnnotationNamespacedInstalls] = revision.AllowInstalls
	}
	err = m.Client.Create(ctx, p, fieldManager)
	if apierrors.IsAlreadyExists(err) {
		if current, readErr := m.provider(ctx, in.provider); readErr != nil || current != nil {
			return current, cmp.Or(readErr, refuse(in.providerFinding(current)))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("create Provider %s: %w", in.provider, err)
	}
	return p, nil
}

// provider returns a Provider, or nil if there is none.
func (m *Migration) provider(ctx context.Context, name string) (*v1.Provider, error) {
	p := &v1.Provider{}
	if err := m.Client.Get(ctx, client.ObjectKey{Name: name}, p); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read Provider %s: %w", name, err)
	}
	return p, nil
}

// annotationMoving marks a Provider that the migration has paused.
const annotationMoving = "xpkg.dev/moving"

// startStep installs the manager.
func (m *Migration) startStep(s *snapshot, manifests []bootstrap.Object) *migration.Step {
	step := &migration.Step{Title: "Install the manager"}
	if s.manager != nil {
		missing, err := rollout.Missing(s.manager)
		step.Done = missing == "" && err == nil
	}
	if !step.Done {
		step.Details = []string{fmt.Sprintf(
			"Deployment %s/%s with --first-generation; `xpkg bootstrap --first-generation` prints all objects", s.namespace,
			bootstrap.Name,
		)}
	}
	step.Run = func(ctx context.Context, report migration.Report) error {
		if err := m.refuseManifests(ctx, manifests); err != nil {
			return err
		}
		if err := rollout.Apply(ctx, m.Client, manifests, func(name string) error {
			report(
				"applied %s", name,
			)
			return nil
		}); err != nil {
			return err
		}
		report("waiting for the manager")
		return migration.WaitRollout(ctx, m.Client, client.ObjectKey{Namespace: s.namespace, Name: bootstrap.Name})
	}
	return step
}

// activationStep lets the manager reconcile the Providers, and waits until they are ready.
func (m *Migration) activationStep(s *snapshot) *migration.Step {
	step := &migration.Step{Title: "Let the manager run the packages", Done: true}
	if m.WithoutManager {
		step.Title = "Let the packages run when the manager starts"
	}
	for _, in := range s.installs {
		if p := s.providers[in.provider]; p == nil || !m.isActive(p) {
			step.Done = false
			step.Details = append(
				step.Details, fmt.Sprintf("Provider %s gets a runtime, unless it only has the CRDs of namespaces", in.provider),
			)
		}
	}
	step.Details = slices.Compact(step.Details)
	step.Run = func(ctx context.Context, report migration.Report) error {
		for _, in := range s.installs {
			if err := m.resume(ctx, in.provider); err != nil {
				return err
			}
		}
		err := migration.Wait(ctx, m.poll(), report, func(ctx context.Context) (string, error) { return m.notReady(ctx, s) })
		return migration.Explain(err, "Inspect the Providers with `kubectl get providers.%s`.", v1.Group)
	}
	return step
}

// isActive reports whether a Provider is not paused by the migration, and ready. Without a manager, it need not be
// ready.
func (m *Migration) isActive(p *v1.Provider) bool {
	ready := p.GetCondition(v1.TypeReady)
	return p.Annotations[annotationMoving] == "" &&
		(m.WithoutManager || ready.Status == corev1.ConditionTrue && ready.ObservedGeneration == p.Generation)
}

// resume ends the pause of a Provider that the migration has created.
func (m *Migration) resume(ctx context.Context, name string) error {
	p := &v1.Provider{}
	if err := m.Client.Get(ctx, client.ObjectKey{Name: name}, p); err != nil {
		return fmt.Errorf("read Provider %s: %w", name, err)
	}
	if p.Annotations[annotationMoving] == "" {
		return nil
	}
	before := p.DeepCopy()
	delete(p.Annotations, annotationMoving)
	delete(p.Annotations, v1.AnnotationPaused)
	// The patch removes only annotations of the migration, so a concurrent change of the manager does not matter.
	if err := m.Client.Patch(ctx, p, client.MergeFrom(before), fieldManager); err != nil {
		return fmt.Errorf("resume Provider %s: %w", name, err)
	}
	return nil
}

// notReady returns the first Provider that is not ready, or "".
func (m *Migration) notReady(ctx context.Context, s *snapshot) (string, error) {
	for _, in := range s.installs {
		p := &v1.Provider{}
		if err := m.Client.Get(ctx, client.ObjectKey{Name: in.provider}, p); err != nil {
			return "", fmt.Errorf("read Provider %s: %w", in.provider, err)
		}
		if !m.isActive(p) {
			return fmt.Sprintf("Provider %s is not ready: %s", p.Name, p.GetCondition(v1.TypeReady).Message), nil
		}
	}
	return "", nil
}
