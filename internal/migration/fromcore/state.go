package fromcore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/xpkg-dev/xpkg/apis/pkg/v1"
	"github.com/xpkg-dev/xpkg/internal/bootstrap"
	"github.com/xpkg-dev/xpkg/internal/crossplane"
	"github.com/xpkg-dev/xpkg/internal/migration"
	"github.com/xpkg-dev/xpkg/internal/revision"
	"github.com/xpkg-dev/xpkg/internal/wording"
	"github.com/xpkg-dev/xpkg/pkg/rbac"
)

// snapshot is the part of the cluster that the migration depends on.
type snapshot struct {
	namespace string
	// core and rbac are the Deployments of core and of its RBAC manager. rbac is nil if there is none.
	core, rbac *appsv1.Deployment
	// account is the ServiceAccount of core.
	account types.NamespacedName
	// fenced reports that the policy for the account exists.
	fenced bool
	// manager is the Deployment of the manager, or nil.
	manager *appsv1.Deployment
	// others are the namespaces of other cores and managers that run.
	otherCores, otherManagers []string
	packages                  []installed
	definitions               definitions
	// composites are the names of the XRDs.
	composites []string
}

// installed is a package with its revisions and the Deployments of their runtimes.
type installed struct {
	migration.Package
	deployments []types.NamespacedName
	// forecast is what becomes of the revision, or "" if the manager has taken over the package.
	forecast string
}

func (m *Migration) read(ctx context.Context) (*snapshot, error) {
	s := &snapshot{namespace: m.Manager.Namespace}
	all := &appsv1.DeploymentList{}
	if err := m.Client.List(ctx, all); err != nil {
		return nil, fmt.Errorf("list Deployments: %w", err)
	}
	for i := range all.Items {
		s.addDeployment(&all.Items[i])
	}
	if s.core == nil {
		err := migration.ErrNoCore.New(nil, "Crossplane does not run in the namespace %s", s.namespace)
		if len(s.otherCores) > 0 {
			err = err.WithDo("Name its namespace: --namespace %s.", s.otherCores[0])
		}
		return nil, err
	}
	s.account = types.NamespacedName{Namespace: s.namespace, Name: s.core.Spec.Template.Spec.ServiceAccountName}
	var err error
	if s.fenced, err = crossplane.IsFenced(ctx, m.Client, s.account); err != nil {
		return nil, fmt.Errorf("read the policy %s: %w", crossplane.FenceName, err)
	}
	packages, err := migration.ListPackages(ctx, m.Client)
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		s.packages = append(s.packages, installed{Package: p, deployments: deploymentsOf(p, all.Items)})
	}
	if s.definitions, err = m.readDefinitions(ctx); err != nil {
		return nil, err
	}
	xrds, _, err := m.list(ctx, compositeKind)
	for _, xrd := range xrds {
		s.composites = append(s.composites, xrd.Name)
	}
	return s, err
}

func (s *snapshot) addDeployment(d *appsv1.Deployment) {
	own, runs := d.Namespace == s.namespace, ptr.Deref(d.Spec.Replicas, 1) > 0
	switch {
	case d.Name == crossplane.DeploymentName && own:
		s.core = d
	case d.Name == crossplane.DeploymentName && runs:
		s.otherCores = append(s.otherCores, d.Namespace)
	case d.Name == crossplane.RBACDeploymentName && own:
		s.rbac = d
	case d.Name == bootstrap.Name && own:
		s.manager = d
	case d.Name == bootstrap.Name && runs && d.Labels["app.kubernetes.io/component"] == "package-manager":
		s.otherManagers = append(s.otherManagers, d.Namespace)
	}
}

// deploymentsOf returns the names of the Deployments that the revisions of a package control.
func deploymentsOf(p migration.Package, all []appsv1.Deployment) []types.NamespacedName {
	var out []types.NamespacedName
	for i := range all {
		if slices.ContainsFunc(
			p.Revisions, func(rev v1.PackageRevision) bool { return metav1.IsControlledBy(&all[i], rev) },
		) {
			out = append(out, client.ObjectKeyFromObject(&all[i]))
		}
	}
	return out
}

// coreDeployments returns the Deployments of core that exist.
func (s *snapshot) coreDeployments() []*appsv1.Deployment {
	out := []*appsv1.Deployment{s.core}
	if s.rbac != nil {
		out = append(out, s.rbac)
	}
	return out
}

// findings returns all reasons that prevent the migration.
func (s *snapshot) findings() []migration.Finding {
	var out []migration.Finding
	for _, namespace := range s.otherCores {
		out = append(out, migration.Finding{
			Problem: "Crossplane also runs in the namespace " + namespace,
			Remedy:  "uninstall one of the two, because both write the same packages",
		})
	}
	for _, namespace := range s.otherManagers {
		out = append(out, migration.Finding{
			Problem: "a manager of xpkg runs in the namespace " + namespace,
			Remedy: fmt.Sprintf(
				"stop it with `kubectl scale deployment --namespace %s %s --replicas 0`", namespace, bootstrap.Name,
			),
		})
	}
	if !crossplane.HasKnownArgs(s.core) {
		out = append(out, migration.Finding{
			Problem: fmt.Sprintf("no container of the Deployment %s/%s runs `core start`", s.core.Namespace, s.core.Name),
			Remedy:  "start Crossplane as its Helm chart does",
		})
	}
	for _, p := range s.packages {
		out = append(out, p.findings()...)
	}
	return out
}

// findings returns the reasons why a package cannot be moved.
func (in installed) findings() []migration.Finding {
	var out []migration.Finding
	if in.GetDeletionTimestamp() != nil {
		out = append(out, migration.Finding{Problem: in.Name() + " is being deleted", Remedy: "wait until it is deleted"})
	}
	resource := strings.ToLower(in.PackageKind())
	if v1.IsPaused(in) {
		out = append(out, migration.Finding{
			Problem: in.Name() + " is paused",
			Remedy:  fmt.Sprintf("run `kubectl annotate %s.%s %s %s-`", resource, v1.Group, in.GetName(), v1.AnnotationPaused),
		})
	}
	for _, rev := range in.Revisions {
		if v1.IsPaused(rev) {
			out = append(out, migration.Finding{
				Problem: fmt.Sprintf("the revision %s of %s is paused", rev.GetName(), in.Name()),
				Remedy: fmt.Sprintf(
					"run `kubectl annotate %srevision.%s %s %s-`", resource, v1.Group, rev.GetName(), v1.AnnotationPaused,
				),
			})
		}
	}
	return out
}

// helmRelease returns the name of the Helm release of core, or "".
func (s *snapshot) helmRelease() string {
	if s.core.Labels["app.kubernetes.io/managed-by"] != "Helm" {
		return ""
	}
	return s.core.Annotations["meta.helm.sh/release-name"]
}

// ungrantable returns the API groups of the resources of active Providers, and of XRDs, for which a manager with
// permissions for some groups cannot grant permissions.
func (s *snapshot) ungrantable(granted []string) []string {
	var out []string
	add := func(definition string) {
		_, group, ok := strings.Cut(definition, ".")
		if ok && !rbac.Reserved(schema.GroupResource{Group: group}) {
			out = append(out, group)
		}
	}
	for _, name := range s.composites {
		add(name)
	}
	for _, p := range s.packages {
		for _, rev := range p.Revisions {
			if p.PackageKind() != v1.ProviderKind || !revision.IsActive(rev) {
				continue
			}
			for _, ref := range rev.RevisionStatus().ObjectRefs {
				if ref.Kind == "CustomResourceDefinition" || ref.Kind == managedResourceDefinition {
					add(ref.Name)
				}
			}
		}
	}
	slices.Sort(out)
	return slices.DeleteFunc(slices.Compact(out), func(group string) bool {
		return slices.Contains(granted, group) || slices.Contains(granted, "*")
	})
}

// managedResourceDefinition is the kind from whose objects core creates CRDs of managed resources.
const managedResourceDefinition = "ManagedResourceDefinition"

var (
	definitionKind = schema.GroupKind{Group: "apiextensions.crossplane.io", Kind: managedResourceDefinition}
	compositeKind  = schema.GroupKind{Group: "apiextensions.crossplane.io", Kind: "CompositeResourceDefinition"}
)

// definitions are the managed resource definitions of a cluster.
type definitions struct {
	// created are the definitions that core has created for a package.
	created []*unstructured.Unstructured
	// inactive are the numbers of inactive kinds by the names of their Providers.
	inactive map[string]int
	// others are the names of definitions that neither a package nor a revision controls.
	others []string
}

// readDefinitions reads the managed resource definitions. Their kind exists since version 2 of core.
func (m *Migration) readDefinitions(ctx context.Context) (definitions, error) {
	var out definitions
	items, gvk, err := m.list(ctx, definitionKind)
	if err != nil {
		return out, err
	}
	var ofCore []metav1.PartialObjectMetadata
	for _, item := range items {
		owner := metav1.GetControllerOf(&item)
		switch {
		case owner == nil || !inPackageGroup(owner):
			out.others = append(out.others, item.Name)
		case isRevision(owner):
			d := &unstructured.Unstructured{}
			d.SetGroupVersionKind(gvk)
			d.SetName(item.Name)
			d.SetUID(item.UID)
			out.created, ofCore = append(out.created, d), append(ofCore, item)
		}
	}
	out.inactive, err = m.inactiveKinds(ctx, ofCore)
	return out, err
}

// list returns the metadata of the objects of a kind, and none of a kind that the cluster does not serve.
func (m *Migration) list(
	ctx context.Context, kind schema.GroupKind,
) ([]metav1.PartialObjectMetadata, schema.GroupVersionKind, error) {
	mapping, err := m.Client.RESTMapper().RESTMapping(kind)
	if meta.IsNoMatchError(err) {
		return nil, schema.GroupVersionKind{}, nil
	}
	if err != nil {
		return nil, schema.GroupVersionKind{}, fmt.Errorf("find the kind %s: %w", kind.Kind, err)
	}
	gvk := mapping.GroupVersionKind
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := m.Client.List(ctx, list); err != nil {
		return nil, gvk, fmt.Errorf("list %ss: %w", kind.Kind, err)
	}
	return list.Items, gvk, nil
}

func inPackageGroup(owner *metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	return group == v1.Group
}

func isRevision(owner *metav1.OwnerReference) bool {
	return slices.ContainsFunc(v1.PackageKinds(), func(kind string) bool { return owner.Kind == v1.RevisionKind(kind) })
}

// definitionsStep deletes the managed resource definitions of packages. The CRDs belong to their packages then, and
// core would undo updates with the definitions. The manager owns those that it has written, and keeps them.
func (m *Migration) definitionsStep(s *snapshot) *migration.Step {
	step := &migration.Step{Title: "Delete the managed resource definitions of Crossplane", Done: s.fenced &&
		len(s.definitions.created) == 0}
	if n := len(s.definitions.created); n > 0 {
		step.Details = append(step.Details, wording.Count(n, "definition")+
			" that Crossplane created for packages; no CRD and no custom resource is changed")
	}
	if len(s.definitions.others) > 0 {
		step.Details = append(step.Details, "these belong to no package and stay: "+
			wording.Few(s.definitions.others, shownDefinitions, ", "))
	}
	step.Run = func(ctx context.Context, report migration.Report) error {
		return m.deleteDefinitions(ctx, report)
	}
	return step
}

// shownDefinitions is the maximum number of definitions in the details of a step.
const shownDefinitions = 10

// deleteDefinitions deletes the definitions until none is left. The deletion orphans their CRDs.
func (m *Migration) deleteDefinitions(ctx context.Context, report migration.Report) error {
	requested := map[types.UID]bool{}
	err := migration.Wait(ctx, pollInterval, report, func(ctx context.Context) (string, error) {
		left, err := m.readDefinitions(ctx)
		if err != nil || len(left.created) == 0 {
			return "", err
		}
		for _, d := range left.created {
			uid := d.GetUID()
			if requested[uid] {
				continue
			}
			err := m.Client.Delete(
				ctx, d, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationOrphan),
			)
			if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
				return "", fmt.Errorf("delete %s %s: %w", managedResourceDefinition, d.GetName(), err)
			}
			requested[uid] = true
		}
		return wording.Count(len(left.created), "managed resource definition") + " not deleted yet", nil
	})
	return migration.Explain(err, "Find their finalizers with `kubectl get managedresourcedefinitions -o yaml`.")
}
